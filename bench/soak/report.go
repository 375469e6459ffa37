package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// minute is a row of the report.
type minute struct {
	from           int   // its first second, counted from the beginning of the run
	seconds        []int // commits in each second; -1 for a second in which the judge had stopped the processes
	commits        []time.Duration
	gets           []time.Duration
	searches       []time.Duration
	purges         []time.Duration
	gaveUp         int // number of purges that were repeated
	longest        time.Duration
	longestKind    string
	memory, elder  int64 // resident memory: the maximum of all processes, and that of the process that is never killed
	handles        int64
	disk, log      int64
	files          int64
	kills          int
	restart        time.Duration // longest time from a kill until the next process had opened the store
	checks, broken int
}

// rate returns the mean number of commits per second, the minimum, and the seconds without a commit.
func (m *minute) rate() (each, emptiest int, empty []int) {
	sum, counted := 0, 0
	for k, n := range m.seconds {
		if n < 0 {
			continue
		}
		if n == 0 {
			empty = append(empty, m.from+k)
		}
		if counted == 0 || n < emptiest {
			emptiest = n
		}
		sum += n
		counted++
	}
	return sum / max(counted, 1), emptiest, empty
}

// limits are the values that a run must not exceed.
type limits struct {
	memory, handles, disk int64
}

// least is the minimum number of minutes of a run for which growth is judged: shorter runs are still warming up.
const least = 9

// growth is a value that must not be much larger in the last third of a run than in the first.
type growth struct {
	what  string
	of    func(m *minute) float64
	times float64
	slack float64
}

var growths = []growth{
	{"memory of the process that is never killed, MiB", func(m *minute) float64 { return mib(m.elder) }, 1.5, 64},
	{"open files", func(m *minute) float64 { return float64(m.handles) }, 1.5, 16},
	{"disk, MiB", func(m *minute) float64 { return mib(m.disk) }, 1.5, 256},
	{"p50 of commits, ms", func(m *minute) float64 { return ms(quantile(m.commits, 0.5)) }, 2, 1},
	{"p99 of commits, ms", func(m *minute) float64 { return ms(quantile(m.commits, 0.99)) }, 3, 20},
}

// judge returns the faults that the values of a run show.
func judge(minutes []*minute, l limits) (wrong []string) {
	for i, m := range minutes {
		if _, _, empty := m.rate(); len(empty) > 0 {
			wrong = append(wrong, fmt.Sprintf("minute %d: %d seconds without a commit: %v", i+1, len(empty), empty))
		}
		for _, b := range []struct {
			what        string
			value, most int64
		}{{"bytes of memory in one process", m.memory, l.memory}, {"open files in one process", m.handles, l.handles},
			{"bytes on disk", m.disk, l.disk}} {
			if b.most > 0 && b.value > b.most {
				wrong = append(wrong, fmt.Sprintf("minute %d: %d %s, the bound is %d", i+1, b.value, b.what, b.most))
			}
		}
	}
	if len(minutes) < least {
		return wrong
	}
	third := len(minutes) / 3
	for _, g := range growths {
		first, last := median(minutes[:third], g.of), median(minutes[len(minutes)-third:], g.of)
		if last > first*g.times+g.slack {
			wrong = append(wrong, fmt.Sprintf("%s: %.1f in the median of the first %d minutes, %.1f in that of the last", g.what,
				first, third, last))
		}
	}
	return wrong
}

func median(minutes []*minute, of func(*minute) float64) float64 {
	var values []float64
	for _, m := range minutes {
		values = append(values, of(m))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// quantile returns a quantile of sorted durations.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
func mib(n int64) float64        { return float64(n) / (1 << 20) }

// table returns the report, one row per minute.
func table(minutes []*minute) string {
	var out strings.Builder
	out.WriteString("| minute | commits/s | emptiest second | commit p50 ms | p99 | longest ms | get p50 ms | p99 | " +
		"search p50 ms | p99 | purge p50 ms | longest | gave up | memory MiB, most | never killed | open files | disk MiB " +
		"| of it log | files | kills | next open ms | checks | wrong |\n")
	out.WriteString("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for i, m := range minutes {
		rate, emptiest, _ := m.rate()
		fmt.Fprintf(&out,
			"| %d | %d | %d | %.2f | %.1f | %.0f (%s) | %.3f | %.2f | %.2f | %.1f | %.0f | %.0f | %d | %.0f | %.0f | %d | "+
				"%.0f | %.0f | %d | %d | %.0f | %d | %d |\n",
			i+1, rate, emptiest, ms(quantile(m.commits, 0.5)), ms(quantile(m.commits, 0.99)), ms(m.longest), m.longestKind,
			ms(quantile(m.gets, 0.5)), ms(quantile(m.gets, 0.99)), ms(quantile(m.searches, 0.5)), ms(quantile(m.searches, 0.99)),
			ms(quantile(m.purges, 0.5)), ms(quantile(m.purges, 1)), m.gaveUp,
			mib(m.memory), mib(m.elder), m.handles, mib(m.disk), mib(m.log), m.files, m.kills, ms(m.restart), m.checks, m.broken)
	}
	return out.String()
}
