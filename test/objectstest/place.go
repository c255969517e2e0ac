package objectstest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sequins/source"
)

// Place is a prefix of the bucket of a server, for the tests of package sourcetest.
type Place struct {
	Server Server
	Prefix string
	Open   func(t testing.TB, prefix string) source.Source
}

// NewPlace returns a place of its own for a subtest, also on a server that other processes use. Of its prefix, open makes a source.
func NewPlace(t testing.TB, s Server, open func(t testing.TB, prefix string) source.Source) Place {
	_, name, _ := strings.Cut(strings.ToLower(t.Name()), "/")
	return Place{s, fmt.Sprintf("a prefix/%s-%d", name, rand.Uint32()), open}
}

// Source implements sourcetest.Place.
func (p Place) Source(t *testing.T) source.Source { return p.Open(t, p.Prefix) }

// Put implements sourcetest.Place.
func (p Place) Put(t *testing.T, name string, data []byte) { p.Server.Put(t, p.Prefix+"/"+name, data) }

// Mkdir implements sourcetest.Place: an object with a slash at the end, as consoles make them.
func (p Place) Mkdir(t *testing.T, name string) bool {
	p.Put(t, name+"/", nil)
	return true
}

// Remove implements sourcetest.Place.
func (p Place) Remove(t *testing.T, name string) { p.Server.Remove(t, p.Prefix+"/"+name) }
