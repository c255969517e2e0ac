package sequencefiles

// The columns of a block, in their order in the file.
const (
	keyLengths = iota
	keyBytes
	valueLengths
	valueBytes
)

// appendToBlock adds a record to the block that is being filled.
func (w *Writer) appendToBlock(key, value []byte) error {
	c := &w.columns
	if len(c[keyBytes])+len(c[valueBytes])+len(key)+len(value) > maxRecord-2*5 {
		if err := w.endBlock(); err != nil { // a column's size has to be an int32
			return err
		}
	}
	c[keyLengths], c[keyBytes] = appendEntry(c[keyLengths], c[keyBytes], w.opts.KeyClass, key)
	c[valueLengths], c[valueBytes] = appendEntry(c[valueLengths], c[valueBytes], w.opts.ValueClass, value)
	w.records++
	if len(c[keyBytes])+len(c[valueBytes]) >= w.opts.BlockSize {
		return w.endBlock()
	}
	return nil
}

func appendEntry(lengths, bytes []byte, class string, b []byte) ([]byte, []byte) {
	before := len(bytes)
	bytes = wrap(bytes, class, b)
	return AppendLength(lengths, len(bytes)-before), bytes
}

// endBlock writes the block that is being filled, if there is a record in it.
func (w *Writer) endBlock() error {
	if w.records == 0 {
		return nil
	}
	w.appendSync()
	w.buf = AppendLength(w.buf, w.records)
	for i := range w.columns {
		if err := w.appendColumn(w.columns[i]); err != nil {
			return w.fail(err)
		}
		w.columns[i] = w.columns[i][:0]
	}
	w.records = 0
	return w.flush(flushSize)
}

// appendColumn appends the compressed column behind its size.
func (w *Writer) appendColumn(column []byte) (err error) {
	if w.value, err = w.encoder(w.value[:0], column); err != nil {
		return err
	}
	if len(w.value) > maxRecord {
		return errRecordSize
	}
	w.buf = AppendLength(w.buf, len(w.value))
	w.buf = append(w.buf, w.value...)
	return nil
}
