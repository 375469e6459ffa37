package vfs

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// timeOfDay is SYSTEM_TIMEOFDAY_INFORMATION.
type timeOfDay struct {
	BootTime      int64 // 100 ns since 1601, adjusted when the clock is set
	CurrentTime   int64
	TimeZoneBias  int64
	TimeZoneID    uint32
	Reserved      uint32
	BootTimeBias  uint64
	SleepTimeBias uint64
}

// bootID returns the time of the boot, without the adjustments that were made to the clock since the boot.
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

func birth() uint64 {
	began, life := started(os.Getpid())
	if life != Alive {
		return 0
	}
	return birthOf("", began)
}

// started returns when a process began, in units of 100 ns, and whether it is alive.
func started(pid int) (began uint64, life Life) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err == windows.ERROR_INVALID_PARAMETER { // no such process
		return 0, Dead
	}
	if err != nil {
		return 0, Unknown
	}
	defer windows.CloseHandle(h)
	if e, err := windows.WaitForSingleObject(h, 0); err == nil && e == windows.WAIT_OBJECT_0 {
		return 0, Dead // it has ended, but a handle of it is still open
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return 0, Unknown
	}
	return uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime), Alive
}
