package discovery

import (
	"slices"

	"sequins/store"
)

// LikelyServed returns which of the versions of a database in a store was probably served before a restart, if the record of
// it cannot be read; "" if none was. Those that were held were not. In a cluster it is the greatest, as an older one could
// lead back. A node without a cluster switches to complete versions only, so it is the greatest of those.
func LikelyServed(s *store.Store, db string, local, held []string, inCluster bool) string {
	for _, id := range slices.Backward(slices.Sorted(slices.Values(local))) {
		if !slices.Contains(held, id) && (inCluster || isComplete(s, db, id)) {
			return id
		}
	}
	return ""
}

// isComplete reports whether every partition of a version is in a store.
func isComplete(s *store.Store, db, id string) bool {
	dir, err := s.Dir(db, id)
	if err != nil {
		return false
	}
	complete, err := dir.Complete()
	return err == nil && len(complete) == dir.Manifest().Partitions
}
