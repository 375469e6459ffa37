package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// NewBar returns a progress bar on stderr that disappears at its end. The caller must check
// Animated first.
func (a *App) NewBar(most int64, what string, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(most, append([]progressbar.Option{
		progressbar.OptionSetWriter(a.ErrOut.bar()), progressbar.OptionSetDescription(Printable(what)),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond),
	}, more...)...)
}

// Animated reports whether a progress bar may be shown.
func (a *App) Animated() bool { return a.ErrOut.Screen && !a.Quiet && a.Getenv("TERM") != "dumb" }

// Bar shows a progress bar on a terminal. work names the work whose progress the bar shows. The caller calls progress
// to update the bar, and end to remove it.
func (a *App) Bar(work string) (progress func(done, total int64), end func()) {
	if !a.Animated() {
		return nil, func() {}
	}
	bar := a.NewBar(1, work)
	return func(done, total int64) {
		bar.ChangeMax64(max(total, done+1))
		_ = bar.Set64(done)
	}, func() { _ = bar.Finish() }
}

// Counter returns a function that adds to a count shown on the terminal; a negative number removes the count.
func (a *App) Counter(what string) func(n int) {
	if !a.Animated() {
		return func(int) {}
	}
	bar := a.NewBar(-1, what, progressbar.OptionShowCount(), progressbar.OptionSetElapsedTime(false))
	return func(n int) {
		if n < 0 {
			_ = bar.Finish()
			return
		}
		_ = bar.Add(n)
	}
}
