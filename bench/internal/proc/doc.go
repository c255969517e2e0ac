// Package proc queries the kernel: which processor a process runs on, its use of processor, memory and
// disk, and which files are in memory. All costs in benchmarks are from the kernel's accounting.
package proc
