package cache

// Bytes returns the memory of the entries in bytes.
func (c *Cache) Bytes() int64 { return int64(c.entries.WeightedSize()) }
