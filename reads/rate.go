package reads

import "time"

// A client whose answer holds reserved memory must have received heldRate bytes per second on average, beyond
// Options.HeldGrace. While more than half of the memory for batches is reserved, that is scarceRate, so that a few slow
// clients do not keep it from all others.
const (
	heldRate   = 32 << 10
	scarceRate = 1 << 20
)

// WriteBy returns the time by which the client must have received the next n bytes of the answer, the zero time if it may
// take any. A front end calls it before it writes them, and cuts the client off after that time. It is a limit only for
// requests that hold reserved memory.
func (r *Read) WriteBy(n int) time.Time {
	if r.held.Load() <= 0 {
		return time.Time{}
	}
	if r.sent += int64(n); r.sending.IsZero() {
		r.sending = time.Now()
	}
	rate := int64(heldRate)
	if r.reader.reserved.Load() > batchBudget*r.reader.opts.MaxBatchBytes {
		rate = scarceRate
	}
	return r.sending.Add(r.reader.opts.HeldGrace + time.Duration(float64(r.sent)/float64(rate)*float64(time.Second)))
}
