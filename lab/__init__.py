"""Local hosts to try Framestorm's distributed side on one machine.

Each host is a systemd-nspawn container with its own systemd, sshd, address and disk, as a small VM would be. All that
runs lives in this lab's own control groups, network and mount namespaces, so that ending the processes takes all of
it away.
"""
