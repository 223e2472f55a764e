// SPDX-License-Identifier: Apache-2.0

// What a handshake of wireguard-go costs: both ends in one process, without sockets, as
// handshakes.cpp has it for daelstrom. measure.py builds it against the wireguard-go that it
// measures. A peer's initiations have to be 20 ms apart there, so many pairs of ends take turns.
//
// Prints microseconds of the processor for the end that begins and for the end that answers: the
// least, the median and the most of ten runs.
package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"fmt"
	"os"
	"sort"
	"syscall"
	"time"
	"unsafe"

	"golang.zx2c4.com/wireguard/conn/bindtest"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun/tuntest"
)

const (
	runs   = 10
	rounds = 2 // of all pairs, in each run
	pairs  = 100
)

type end struct {
	device  *device.Device
	peer    *device.Peer
	key     device.NoisePublicKey
	adds    device.CookieGenerator // MACs of what goes to the other end
	checks  device.CookieChecker   // and of what comes from it
	elapsed int64
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func processor() int64 {
	var now syscall.Timespec
	const processCputime = 2
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, processCputime, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		must(errno)
	}
	return now.Nano()
}

func newEnd(which int) *end {
	var secret device.NoisePrivateKey
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(err)
	copy(secret[:], key.Bytes())
	e := &end{}
	copy(e.key[:], key.PublicKey().Bytes())
	e.device = device.NewDevice(tuntest.NewChannelTUN().TUN(), bindtest.NewChannelBinds()[which],
		device.NewLogger(device.LogLevelError, ""))
	must(e.device.SetPrivateKey(secret))
	e.checks.Init(e.key)
	return e
}

func (e *end) meet(other *end) {
	peer, err := e.device.NewPeer(other.key)
	must(err)
	e.peer = peer
	peer.Start()
	e.adds.Init(other.key)
}

func (e *end) timed(work func()) {
	began := processor()
	work()
	e.elapsed += processor() - began
}

func refused(what string) {
	fmt.Fprintln(os.Stderr, "refused:", what)
	os.Exit(1)
}

func shake(a, b *end, packet *[256]byte) {
	var first *device.MessageInitiation
	var second *device.MessageResponse
	a.timed(func() {
		var err error
		first, err = a.device.CreateMessageInitiation(a.peer)
		must(err)
		a.adds.AddMacs(packet[:device.MessageInitiationSize])
	})
	b.timed(func() {
		_ = b.checks.CheckMAC1(packet[:device.MessageInitiationSize])
		if b.device.ConsumeMessageInitiation(first) == nil {
			refused("initiation")
		}
		var err error
		second, err = b.device.CreateMessageResponse(b.peer)
		must(err)
		b.adds.AddMacs(packet[:device.MessageResponseSize])
		must(b.peer.BeginSymmetricSession())
	})
	a.timed(func() {
		_ = a.checks.CheckMAC1(packet[:device.MessageResponseSize])
		if a.device.ConsumeMessageResponse(second) == nil {
			refused("response")
		}
		must(a.peer.BeginSymmetricSession())
	})
}

func print(what string, each []float64) {
	sort.Float64s(each)
	fmt.Printf("%s %.2f %.2f %.2f\n", what, each[0], (each[4]+each[5])/2, each[len(each)-1])
}

func main() {
	var a, b [pairs]*end
	for i := range a {
		a[i], b[i] = newEnd(0), newEnd(1)
		a[i].meet(b[i])
		b[i].meet(a[i])
	}
	var packet [256]byte
	var begins, answers []float64
	for run := -1; run < runs; run++ {
		var caller, called int64
		for round := 0; round < rounds; round++ {
			began := time.Now()
			for i := range a {
				a[i].elapsed, b[i].elapsed = 0, 0
				shake(a[i], b[i], &packet)
				caller += a[i].elapsed
				called += b[i].elapsed
			}
			time.Sleep(25*time.Millisecond - time.Since(began))
		}
		if run >= 0 { // the first is to warm up
			begins = append(begins, float64(caller)/1e3/(rounds*pairs))
			answers = append(answers, float64(called)/1e3/(rounds*pairs))
		}
	}
	print("begins", begins)
	print("answers", answers)
}
