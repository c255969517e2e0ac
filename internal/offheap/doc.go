// Package offheap owns memory outside Go's heap, on huge pages where the kernel has some.
//
// Such memory costs nothing until it is used, the garbage collector neither clears nor counts it, and it is returned at
// once. On huge pages, reads at random places rarely wait for the processor to walk through the page tables. On systems
// other than Linux the memory is on the heap.
package offheap
