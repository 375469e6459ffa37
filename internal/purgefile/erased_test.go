package purgefile

import "testing"

// TestErased verifies that Erased returns the first position of the data that purges have erased since another
// position, 0 if that is unknown.
func TestErased(t *testing.T) {
	own, other := digest{1}, digest{2}
	purge := func(key byte, since, first uint64) Row {
		return Row{Key: Key{key}, Version: since - 1, Since: since, First: first, Store: own}
	}
	for name, c := range map[string]struct {
		rows  []Row
		after uint64
		want  uint64
	}{
		"no row says why the log was purged": {nil, 0, 0},
		"one":                                {[]Row{purge(1, 100, 50)}, 0, 50},
		"the earliest of two":                {[]Row{purge(1, 100, 50), purge(2, 200, 30)}, 0, 30},
		"an earlier purge does not count":    {[]Row{purge(1, 100, 20), purge(2, 200, 50)}, 150, 50},
		"a purge that follows at once":       {[]Row{purge(1, 100, 20), purge(2, 150, 50)}, 150, 50},
		"one that follows at once, of older": {[]Row{purge(1, 150, 20), purge(2, 200, 50)}, 150, 20},
		"all are earlier":                    {[]Row{purge(1, 100, 20)}, 150, 0},
		"an older program":                   {[]Row{purge(1, 100, 0), purge(2, 200, 50)}, 0, 0},
		"another store": {[]Row{{Key: Key{1}, Version: 9, Since: 100, First: 5, Store: other}, purge(2, 200, 50)}, 0,
			50},
		"a redaction": {[]Row{{Key: Key{1}, Version: 40, Redacted: true, Since: 10, Store: own}, purge(2, 200, 50)}, 150,
			40},
		"a redaction that was overwritten since": {[]Row{{Key: Key{1}, Version: 40, Redacted: true, Since: 10, Done: true,
			Ended: 160, Store: own}}, 150, 40},
		"a redaction that was overwritten before": {[]Row{{Key: Key{1}, Version: 40, Redacted: true, Since: 10, Done: true,
			Ended: 150, Store: own}, purge(2, 200, 50)}, 150, 50},
		"a redaction that follows a purge at once": {[]Row{purge(1, 100, 20), {Key: Key{2}, Version: 40, Redacted: true,
			Since: 90, Done: true, Ended: 151, Store: own}}, 150, 40},
		"a redaction of a document that was purged since": {[]Row{{Key: Key{1}, Version: 40, Redacted: true, Since: 60,
			Store: own}, purge(1, 100, 20), purge(2, 200, 180)}, 150, 180},
		"a redaction of a document that was purged, and written again": {[]Row{purge(1, 30, 20), {Key: Key{1}, Version: 40,
			Redacted: true, Since: 60, Store: own}, purge(2, 200, 180)}, 150, 40},
		"a redaction of a document that another store has purged": {[]Row{{Key: Key{1}, Version: 40, Redacted: true,
			Since: 60, Store: own}, {Key: Key{9}, Version: 99, Since: 100, First: 5, Store: other}}, 150, 40},
		"a redaction of an older program": {[]Row{{Key: Key{1}, Version: 40, Redacted: true, Since: 10, Done: true,
			Store: own}, purge(2, 200, 50)}, 150, 40},
	} {
		var table Table
		for _, r := range c.rows {
			table.Add(r)
		}
		if got := table.Erased(own, c.after); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
