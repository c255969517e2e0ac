// Package turns decides when waiting loads begin.
//
// A [Queue] has a number of places. A [Turn] waits in it until a place is free and its [Windows] are open; of several, first
// attempts come before retries, then the one with the greatest priority, and equal ones in the order in which they entered. A turn that has a place keeps it
// until it leaves, whatever its windows do meanwhile.
//
// The queue has no goroutine. It decides whenever a turn enters, changes or leaves, and when a window opens, for which it sets
// one timer. [Windows] are pure: times of the day, in a time zone, from a text such as "22:00-06:00 Europe/Paris".
package turns
