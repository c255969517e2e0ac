//go:build race

package server

// raceEnabled: the race detector makes sync.Pool forget things, so that what
// does not allocate seems to.
const raceEnabled = true
