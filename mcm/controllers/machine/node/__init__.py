"""A machine's Node: which one it is; its labels, annotations, taints and capacity."""
