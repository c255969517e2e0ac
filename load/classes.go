package load

import (
	"fmt"
	"sync"

	"sequins/input/sequencefile"
)

// recordClasses are the classes of keys and values in the SequenceFiles of a version. They must agree:
// values of unknown classes are served in serialized form, so a file with other classes would be served
// in a different form. Such a file comes from another job, or its header, which has no checksum, is
// damaged.
type recordClasses struct {
	mu         sync.Mutex
	path       string // of the file that they come from, "" if none was opened yet
	key, value string
}

// agree returns an error that wraps ErrMixed if the classes of a file differ from those of earlier
// files.
func (c *recordClasses) agree(path string, h sequencefile.Header) error {
	key, value := served(h.KeyClass), served(h.ValueClass)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.path == "":
		c.path, c.key, c.value = path, key, value
	case key != c.key:
		return fmt.Errorf("%w: keys are %s in %s and %s in %s", ErrMixed, key, path, c.key, c.path)
	case value != c.value:
		return fmt.Errorf("%w: values are %s in %s and %s in %s", ErrMixed, value, path, c.value, c.path)
	}
	return nil
}

// served describes the form in which a class is served: the contents of Text and BytesWritable, or the
// serialized form.
func served(class string) string {
	if class == sequencefile.Text || class == sequencefile.BytesWritable {
		return "bytes"
	}
	return fmt.Sprintf("of the class %q", class)
}
