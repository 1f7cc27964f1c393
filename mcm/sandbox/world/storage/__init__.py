"""Storage as a cluster has it: claims, volumes, and attachments that take their time.

* :mod:`.claim_binder` gives claims their volumes (:mod:`.matching`, :mod:`.provisioning`),
  :mod:`.volume_reclaimer` ends them; :mod:`.ephemeral_claims` makes the claims of pods' own.
* :mod:`.attach_detach` decides what is attached to which Node (:mod:`.attachments`);
  :mod:`.attacher` is the driver, which takes as long and fails as often as a volume's attributes
  or annotations say (:mod:`.behaviour`).
* :mod:`.scheduling` says which Nodes a pod's volumes leave it. Kubelets wait for volumes and say
  which are in use in :mod:`mcm.providers.simulated.mounts`.

Every CSI driver is served: a StorageClass of any provisioner will do. What is not here: expansion,
snapshots, protection of claims in use, in-tree volumes, inline CSI volumes; that a claim is for one
pod alone is heeded by the scheduler, not by kubelets.
"""
