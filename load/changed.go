package load

import (
	"errors"

	"sequins/store"
)

// ErrPlanChanged is the error for a served version whose blocks cannot be restored from the source.
var ErrPlanChanged = errors.New("the version's files in the source are not those that it was loaded from")

// ErrFieldsChanged is ErrPlanChanged for a plan of an older release, which does not contain the fields.
var ErrFieldsChanged = errors.New("the version was loaded with another key, value or partitioner than is configured for its database now; " +
	"configure those from before until a new version is there")

// Changed returns why the blocks of a version with plan old cannot be restored by plan now.
func Changed(old, now store.Manifest) error {
	now.Format, now.Partitioner, now.Aligned = old.Format, old.Partitioner, old.Aligned
	if old.SamePlan(now) {
		return ErrFieldsChanged
	}
	return ErrPlanChanged
}
