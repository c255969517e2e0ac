//go:build race

package proxy

const raceEnabled = true // its own allocations are counted too
