// Package packaging tests the packages of sequins: it builds a deb and an rpm and checks their content;
// installs the deb below a directory, starts, upgrades and removes it; checks the unit with systemd; and runs the
// content of the image without other files.
package packaging
