"""The server on the network: HTTPS on a loopback address, its certificates, and the kubeconfig."""
