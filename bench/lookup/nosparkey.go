//go:build !sparkey

package main

// sparkeys is empty without the build tag sparkey: its library is in C and not packaged everywhere.
func sparkeys() []contender { return nil }
