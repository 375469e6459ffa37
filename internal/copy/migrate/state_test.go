package migrate

import "testing"

// TestElsewhere verifies that on Windows a path in migrate.json does not make the program access another host.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		volume, of string
		want       bool
	}{
		{"", "", false}, {`C:`, `C:`, false}, {`D:`, `C:`, false},
		{`\\host\share`, `C:`, true}, {`//host/share`, `C:`, true}, {`\\?\UNC\host\share`, `C:`, true}, {`\\.\pipe`, `C:`, true},
		{`\\host\share`, `\\HOST\share`, false}, {`\\host\share`, `\\host\other`, true},
	} {
		if got := elsewhere(c.volume, c.of); got != c.want {
			t.Errorf("%q of %q: %v", c.volume, c.of, got)
		}
	}
}
