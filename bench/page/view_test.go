package page

import (
	"net/url"
	"strconv"
)

// view returns the fragment that names a view.
func view(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + q.Encode()
}

func number(n int) string { return strconv.Itoa(n) }
