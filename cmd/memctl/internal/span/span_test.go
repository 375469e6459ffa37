package span

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for s, want := range map[string]time.Duration{
		"7d": 168 * h, "1w": 168 * h, "2w3d": 17 * 24 * h, "36h": 36 * h, "1h30m": 90 * time.Minute, "1w2d3h4m5s": 219*h + 4*time.Minute + 5*time.Second,
		"1.5h": 90 * time.Minute, "90m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "100000d": 2_400_000 * h,
	} {
		if d, err := Parse(s); err != nil || d != want {
			t.Errorf("%s: %v, %v, want %v", s, d, err, want)
		}
	}
	for _, s := range []string{"", "0", "7", "d", "-1d", "+1d", "1d-1h", "1.5d", "3d2w", "1d1d", "1h1d", "100001d", "99999999999999999999d", "14286w", "1w 2d", "soon", "0s", "0d", "1y", "2562048h", "100000d32h", "100000d1ns"} {
		if d, err := Parse(s); err == nil {
			t.Errorf("%q is taken as %v", s, d)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 30 * 24 * h: "30d", 90 * time.Minute: "1h30m", 24*h + time.Second: "1d1s", 1500 * time.Millisecond: "1.5s", -h: "-1h"} {
		if got := Text(d); got != want {
			t.Errorf("%v: %s, want %s", int64(d), got, want)
		}
	}
}

// What is read is written so that it is read as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"7d", "1w", "2w3d", "36h", "1h30m", "1.5h", "-1s", "100000d23h", "100000d32h", "14285w5d", "1µs", "9223372036s", "d", "ww"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := Parse(s); err == nil {
			again, err := Parse(Text(d))
			if d <= 0 || err != nil || again != d {
				t.Fatalf("%q is %d, written %q, which is %d, %v", s, d, Text(d), again, err)
			}
		}
	})
}
