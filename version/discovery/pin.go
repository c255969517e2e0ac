package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		o.Log.Warn("the pin cannot be read; the last one stays in force", "error", err)
		o.found.LeftOut[pin.FileName] = fmt.Sprintf("%s of %s cannot be read, and what it said before stays in force: %v", pin.FileName, o.DB, err)
		f = o.Pin
	}
	o.found.Pin = f
	pinned := f.Pinned(o.now)
	if pinned != "" && !f.Until.IsZero() {
		o.lookAgain(f.Until)
	}
	if pinned != "" && pinned != o.Current.Name && o.Known[pinned].Name == "" && !slices.Contains(o.names, pinned) {
		o.found.LeftOut[pin.FileName] = fmt.Sprintf("version %s of %s is pinned, but is not in the source", pinned, o.DB)
	}
}

// errEmptied is the error for a pin that is away with all versions: the directory may be a mount that is missing, or be copied.
var errEmptied = errors.New("it is away, and so are all versions; a version in the directory of the database ends that")

func (o *observer) pin(ctx context.Context) (pin.File, error) {
	data, err := o.pinData(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(o.names) == 0 && !o.Pin.Equal(pin.File{}):
		return pin.File{}, errEmptied
	case errors.Is(err, fs.ErrNotExist):
		return pin.File{}, nil
	}
	if err != nil {
		return pin.File{}, err
	}
	return pin.Parse(data)
}

// pinData reads the file, up to one byte more than it may have.
func (o *observer) pinData(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	r, err := o.Source.Open(ctx, o.DB, "", source.File{Name: pin.FileName}, source.ReadOptions{})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, pin.MaxSize+1))
	if cerr := r.Close(); err == nil && len(data) <= pin.MaxSize {
		err = cerr
	}
	return data, err
}
