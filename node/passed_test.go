package node

import "testing"

// Version 10 after version 9 is not loaded, and the status says so, also after a restart.
func TestPassedOver(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "9", 1, "fig")
	f.put("fruit", "8", 1, "fig")
	n := f.run()
	n.serves("fruit", "9")
	if text := n.onNode("fruit", "9").Error; text != "" {
		t.Error(text)
	}
	f.put("fruit", "10", 1, "fig")
	n.Refresh()
	said := func() bool {
		return n.onNode("fruit", "9").Error == "version 10 of fruit is in the source and is not loaded: names are compared byte by byte, and 10 is less than 9, which is served; "+
			"write it with a greater name, such as a date or numbers of equal length"
	}
	n.eventually("it says so", said)
	n.stop()
	n = f.run()
	n.serves("fruit", "9")
	n.eventually("it says so after a restart", said)
	n.update("fruit", "91", 1, "fig")
	n.eventually("it does not matter any more", func() bool { return n.onNode("fruit", "91").Error == "" })
}
