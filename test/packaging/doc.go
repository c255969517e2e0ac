// Package packaging holds the tests of what sequins is handed out as: a deb and an rpm are made, looked into,
// and the deb is installed below a directory, started, upgraded and removed; the unit is held against systemd's
// own checks; what the image holds is run with nothing else around it; and the manifests for Kubernetes are
// held against what they are about.
package packaging
