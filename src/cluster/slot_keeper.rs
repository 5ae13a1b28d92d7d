//! The thread that leases a slot and renews it, so that no mint ever waits for the coordinator while there is a slot.
