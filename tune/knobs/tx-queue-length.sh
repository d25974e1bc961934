# tx-queue-length.sh - how many packets may wait for an interface to send

. "$TUNE/lib/nic.sh"

knob_tx_queue_length_targets=(nic_targets)
knob_tx_queue_length_supported=(nic_allowed)
knob_tx_queue_length_file=/sys/class/net/TARGET/tx_queue_len
knob_tx_queue_length_range=0-999999999
knob_tx_queue_length_values="packets; 1000 is the kernel's default for Ethernet"

knob_tx_queue_length_explain="
How many packets the queueing discipline lets wait for the card.
When it is full, a datagram is dropped and the sender may be told ENOBUFS; a long
one holds an all-to-all burst, but what comes last waits longest.
Source: Documentation/ABI/testing/sysfs-class-net, tx_queue_len; ip-link(8)."
