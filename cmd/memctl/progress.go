package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// newBar is a progress bar on stderr that disappears at its end. Ask animated before.
func (a *app) newBar(most int64, what string, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(most, append([]progressbar.Option{
		progressbar.OptionSetWriter(a.errOut.bar()), progressbar.OptionSetDescription(printable(what)),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond),
	}, more...)...)
}

// animated says whether progress may be shown.
func (a *app) animated() bool { return a.errOut.screen && !a.quiet && a.get("TERM") != "dumb" }

// bar shows on a terminal how far something is; the second function ends that.
func (a *app) bar(what string) (progress func(done, total int64), end func()) {
	if !a.animated() {
		return nil, func() {}
	}
	bar := a.newBar(1, what)
	return func(done, total int64) {
		bar.ChangeMax64(max(total, done+1))
		_ = bar.Set64(done)
	}, func() { _ = bar.Finish() }
}
