package blocks

// Place is where in a block a key lies if it is there at all.
type Place struct {
	File   string // the name that the reader was opened with
	Page   int    // counted from 0
	Pages  int    // of the block
	Offset int64  // of the page in the file, in bytes
	Length int    // of the page in the file, in bytes
	Packed bool   // the page is compressed
}

// Place returns the only page that can hold key. It reads nothing and looks at the index alone: ok is false
// where that shows that no page can hold it.
func (r *Reader) Place(key []byte) (p Place, ok bool) {
	rest, ok := r.index.CutPrefix(key)
	if !ok || r.index.Pages() == 0 {
		return Place{}, false
	}
	i := r.index.Find(rest)
	l := r.index.Location(i)
	return Place{File: r.name, Page: i, Pages: r.index.Pages(), Offset: l.Offset(), Length: l.Length(), Packed: l.Packed()}, true
}
