package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sequins/source"
	"sequins/version/pin"
)

// readPin reads the pin of the database. If that fails, the last one stays in force: an error must not bring back a
// version that somebody has excluded. The listing is repeated when the pin expires.
func (o *observer) readPin(ctx context.Context) {
	f, err := o.pin(ctx)
	if err != nil {
		o.found.LeftOut[pin.FileName] = fmt.Sprintf("%s of %s cannot be read, and what it said before stays in force: %v", pin.FileName, o.DB, err)
		f = o.Pin
	}
	o.found.Pin = f
	pinned := f.Pinned(o.now)
	if pinned != "" && !f.Until.IsZero() {
		o.lookAgain(f.Until)
	}
	if pinned != "" && pinned != o.current().Name && o.Known[pinned].Name == "" && !slices.Contains(o.names, pinned) {
		o.found.LeftOut[pin.FileName] = fmt.Sprintf("version %s of %s is pinned, but is not in the source", pinned, o.DB)
	}
}

// errEmptied is the error for a pin that is away with all versions: the directory may be a mount that is missing, or be copied.
var errEmptied = errors.New("it is away, and so are all versions; a version in the directory of the database ends that")

func (o *observer) pin(ctx context.Context) (pin.File, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	data, err := source.ReadSmall(ctx, o.Source, o.DB, pin.FileName, pin.MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(o.names) == 0 && !o.Pin.Equal(pin.File{}):
		return pin.File{}, errEmptied
	case errors.Is(err, fs.ErrNotExist):
		return pin.File{}, nil
	case err != nil:
		return pin.File{}, err
	}
	return pin.Parse(data)
}
