//go:build !race

package loadproc

const raceDetector = false
