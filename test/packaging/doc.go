// Package packaging tests the packages of sequins: it builds a deb and an rpm and checks their content;
// installs the deb below a directory, starts, upgrades and removes it; checks the unit with systemd; runs the
// content of the image without other files; and compares the manifests for Kubernetes with the program.
package packaging
