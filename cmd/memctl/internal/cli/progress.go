package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// NewBar returns a progress bar on stderr that disappears when the work is finished. total is the number of steps;
// -1 means unknown. label describes the work. The caller must check Animated first.
func (a *App) NewBar(total int64, label string, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(a.ErrOut.bar()), progressbar.OptionSetDescription(Printable(label)),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond),
	}, more...)...)
}

// Animated reports whether a progress bar may be shown.
func (a *App) Animated() bool { return a.ErrOut.Screen && !a.Quiet && a.Getenv("TERM") != "dumb" }

// Bar shows a progress bar on a terminal. work names the work whose progress the bar shows. The caller calls progress
// to update the bar, and end to remove it. If no bar may be shown (see Animated), progress is nil and end does
// nothing.
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

// Counter returns a function that adds n to a count shown on the terminal. A negative n removes the count from the
// terminal. label describes the counted work. If the terminal cannot show the count (see Animated), the returned
// function does nothing.
func (a *App) Counter(label string) func(n int) {
	if !a.Animated() {
		return func(int) {}
	}
	bar := a.NewBar(-1, label, progressbar.OptionShowCount(), progressbar.OptionSetElapsedTime(false))
	return func(n int) {
		if n < 0 {
			_ = bar.Finish()
			return
		}
		_ = bar.Add(n)
	}
}
