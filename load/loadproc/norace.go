//go:build !race

package loadproc

// raceDetector is whether the program was built with it.
const raceDetector = false
