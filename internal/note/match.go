package note

import (
	"path"
	"strings"
)

// Match reports whether a path matches a pattern. A segment of the pattern is matched as by path.Match; **
// matches any number of segments.
func Match(pattern, name string) bool {
	want, rest, more := strings.Cut(pattern, "/")
	if want == "**" {
		if !more {
			return true
		}
		for {
			if Match(rest, name) {
				return true
			}
			_, after, deeper := strings.Cut(name, "/")
			if !deeper {
				return false
			}
			name = after
		}
	}
	has, after, deeper := strings.Cut(name, "/")
	if ok, err := path.Match(want, has); err != nil || !ok || more != deeper {
		return more && rest == "**" && !deeper && err == nil && ok
	}
	return !more || Match(rest, after)
}
