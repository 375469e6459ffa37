package cli

import (
	"runtime/debug"
	"testing"
)

// What the toolchain notes is shown, whichever way the program was built.
func TestBuildNoted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want build
	}{
		{"go install of a release", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, build{Version: "v1.2.3"}},
		{
			"go install of a commit", debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20260131150405-0123456789ab"}},
			build{Version: "v1.2.4-0.20260131150405-0123456789ab", Revision: "0123456789ab", Date: "2026-01-31T15:04:05Z"},
		},
		{
			"a checkout", debug.BuildInfo{
				Main: debug.Module{Version: "v0.0.0-20260131150405-0123456789ab+dirty"},
				Settings: []debug.BuildSetting{
					{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.time", Value: "2026-01-31T15:04:05Z"}, {Key: "vcs.modified", Value: "true"},
				},
			},
			build{Version: "v0.0.0-20260131150405-0123456789ab+dirty", Revision: "0123456789abcdef0123456789abcdef01234567", Date: "2026-01-31T15:04:05Z", Modified: true},
		},
		{"nothing noted", debug.BuildInfo{}, build{Version: "(devel)"}},
	} {
		b := build{Version: "(devel)"}
		b.noted(&c.info)
		if b.Version != c.want.Version || b.Revision != c.want.Revision || b.Date != c.want.Date || b.Modified != c.want.Modified {
			t.Errorf("%s: %+v, want %+v", c.name, b, c.want)
		}
	}
}
