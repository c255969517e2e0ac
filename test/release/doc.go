// Package release tests the files of a release, as make release gives them: that a second build is equal to the byte; that the
// programs are static, and serve on amd64 and, under QEMU, on arm64; the packages and the image of both architectures, unpacked by
// the tools of others and run without other files; what the SBOM and the notices say against what is in the program.
package release
