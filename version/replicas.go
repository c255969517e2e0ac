package version

// OnAnyNode reports whether another node holds one of the first partitions of a version.
func OnAnyNode(f Following, partitions int) bool {
	for p := range max(1, partitions) {
		if f.Replicas(p) > 0 {
			return true
		}
	}
	return false
}

// IsWhole reports whether every partition is on this node, or on one that may be asked.
func IsWhole(f Following, held []bool) bool {
	for p, here := range held {
		if !here && len(f.Peers(p)) == 0 {
			return false
		}
	}
	return true
}

// IsReadable reports whether at least one partition can be read, here or from a peer.
func IsReadable(f Following, held []bool) bool {
	for p, here := range held {
		if here || f.Replicas(p) > 0 {
			return true
		}
	}
	return false
}
