//go:build race

package loadproc

const raceDetector = true
