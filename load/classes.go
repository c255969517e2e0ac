package load

import (
	"fmt"
	"sync"

	"sequins/sequencefile"
)

// recordClasses are those of the keys and values in the SequenceFiles of a version, which must agree. What is of a class that
// is not known is served as it was serialised. So a file with another one than its neighbours would be served in
// another form: it is of another job, or its header, which no checksum protects, is damaged.
type recordClasses struct {
	mu         sync.Mutex
	path       string // of the file they come from, "" if none has been opened yet
	key, value string
}

// agree returns an error that wraps ErrMixed if the classes of a file are not those of the files before it.
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

// served returns in which form a class is served: Text and BytesWritable as the bytes in them.
func served(class string) string {
	if class == sequencefile.Text || class == sequencefile.BytesWritable {
		return "bytes"
	}
	return fmt.Sprintf("of the class %q", class)
}
