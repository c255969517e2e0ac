package metrics

// Vars is a summary for /debug/vars: what has been counted since the start.
type Vars struct {
	// Requests are those for keys, by status code.
	Requests map[string]uint64
	// Bytes are those of their bodies.
	Bytes uint64
	// InFlight and Connections are of this moment.
	InFlight    int64
	Connections int
}

// Vars sums the counters up.
func (s *Server) Vars() Vars {
	v := Vars{Requests: make(map[string]uint64), InFlight: s.inFlight.value()}
	for _, r := range s.requests() {
		if r.route != RouteKey {
			continue
		}
		t := r.totals()
		v.Bytes += t.bytes
		for i, n := range t.codes {
			if n > 0 {
				v.Requests[codeLabel(i)] += n
			}
		}
	}
	if f := s.state.Load(); f != nil {
		v.Connections = (*f)().Connections
	}
	return v
}
