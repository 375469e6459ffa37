package vfs

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// timeOfDay is SYSTEM_TIMEOFDAY_INFORMATION.
type timeOfDay struct {
	BootTime      int64 // 100 ns since 1601, corrected when the clock is set
	CurrentTime   int64
	TimeZoneBias  int64
	TimeZoneID    uint32
	Reserved      uint32
	BootTimeBias  uint64
	SleepTimeBias uint64
}

// bootID is the boot time without the corrections made since.
func bootID() [2]uint64 {
	var t timeOfDay
	err := windows.NtQuerySystemInformation(windows.SystemTimeOfDayInformation,
		unsafe.Pointer(&t), uint32(unsafe.Sizeof(t)), nil)
	if err != nil {
		return [2]uint64{}
	}
	return [2]uint64{1, uint64(t.BootTime) - t.BootTimeBias}
}

func command(pid int) string {
	if pid == os.Getpid() {
		return ownCommand()
	}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(buf))
	if windows.QueryFullProcessImageName(h, 0, &buf[0], &n) != nil {
		return ""
	}
	return filepath.Base(windows.UTF16ToString(buf[:n]))
}

func pidNamespace() string { return "" }
