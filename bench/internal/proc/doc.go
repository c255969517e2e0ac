// Package proc asks the kernel: which processor a process runs on, what it has used of processor, memory
// and disk, and which files lie in memory. Everything that a benchmark says of cost is from its accounting
// and not from ours.
package proc
