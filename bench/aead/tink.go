// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM by tink-go, as a program uses it: for each line on standard input it seals messages
// for a tenth of a second, and prints the nanoseconds that one took.
//
//	go run tink.go BYTES
package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/xaesgcm"
	"github.com/tink-crypto/tink-go/v2/insecuresecretdataaccess"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/secretdata"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	size := must(strconv.Atoi(os.Args[1]))
	raw := make([]byte, 32)
	must(rand.Read(raw))
	parameters := must(xaesgcm.NewParameters(xaesgcm.VariantNoPrefix, 12))
	bytes := secretdata.NewBytesFromData(raw, insecuresecretdataaccess.Token{})
	key := must(xaesgcm.NewKey(bytes, 0, parameters))
	manager := keyset.NewManager()
	if err := manager.SetPrimary(must(manager.AddKey(key))); err != nil {
		log.Fatal(err)
	}
	sealer := must(aead.New(must(manager.Handle())))
	message := make([]byte, size)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		count, begin := 0, time.Now()
		for time.Since(begin) < 100*time.Millisecond {
			for i := 0; i < 64; i++ {
				must(sealer.Encrypt(message, nil))
			}
			count += 64
		}
		fmt.Printf("%.3f\n", float64(time.Since(begin).Nanoseconds())/float64(count))
	}
}
