// Package packaging tests the packages of sequins: it builds a deb and an rpm and checks their content;
// installs the deb below a directory, starts, upgrades and removes it; and checks the unit with systemd. Package release tests what
// a release has besides.
package packaging
