package blocks

// Blocks of tests are small: they are encoded from early on.
func init() { firstEpoch = 600 }
