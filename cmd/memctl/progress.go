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
