package reads

// DropReplaced is what the cache's goroutine does from time to time.
func (rd *Reader) DropReplaced() { rd.dropReplaced() }

// Cached returns the bytes of the cache.
func (rd *Reader) Cached() int64 { return rd.cache.Bytes() }

// SampleEvery is the number of keys for each sample.
const SampleEvery = sampleEvery

// MaxSketches is the number of dbs whose keys are counted.
const MaxSketches = maxSketches
