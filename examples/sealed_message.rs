// SPDX-License-Identifier: Apache-2.0
// From Rust, behind extern "C": seals a message with AES-256-GCM under a nonce that never repeats, opens it
// again, and refuses it once a bit of it was altered.
//
//     rustc --edition 2021 -L FOLDER_OF_LIBDAELSTROM_SO examples/sealed_message.rs
use std::ffi::{c_char, c_int, c_void, CStr};
use std::io::Read;
use std::ptr::{null, null_mut};

#[repr(C)]
struct Ran {
    backend: [c_char; 32],
    threads: i32,
    replaced: u32,
    chunks: u64,
    unused: [u64; 2],
}
const _: () = assert!(std::mem::size_of::<Ran>() == 64); // dael_ran, which never changes

const AUTHENTICATION: c_int = 16; // dael_status

#[link(name = "daelstrom")]
extern "C" {
    fn dael_last_error() -> *const c_char;
    fn dael_engine_open(options: *const c_void, engine: *mut *mut c_void) -> c_int;
    fn dael_engine_close(engine: *mut c_void);
    fn dael_key_import(bytes: *const c_void, size: usize, key: *mut *mut c_void) -> c_int;
    fn dael_key_free(key: *mut c_void);
    fn dael_nonces_make(fixed: *const u8, first: u64, nonces: *mut *mut c_void) -> c_int;
    fn dael_nonces_next(nonces: *mut c_void, nonce: *mut u8) -> c_int;
    fn dael_nonces_free(nonces: *mut c_void);
    fn dael_wipe(memory: *mut c_void, size: usize);
    fn dael_gcm_seal(
        engine: *mut c_void, key: *const c_void, iv: *const u8, iv_size: usize, aad: *const u8, aad_size: usize,
        input: *const u8, output: *mut u8, size: usize, tag: *mut u8, tag_size: usize, ran: *mut Ran,
    ) -> c_int;
    fn dael_gcm_open(
        engine: *mut c_void, key: *const c_void, iv: *const u8, iv_size: usize, aad: *const u8, aad_size: usize,
        input: *const u8, output: *mut u8, size: usize, tag: *const u8, tag_size: usize, ran: *mut Ran,
    ) -> c_int;
}

fn last_error() -> String {
    unsafe { CStr::from_ptr(dael_last_error()) }.to_string_lossy().into_owned()
}

fn check(status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(last_error()) }
}

fn main() -> Result<(), String> {
    let mut secret = [0u8; 32];
    let mut random = std::fs::File::open("/dev/urandom").map_err(|fault| fault.to_string())?;
    random.read_exact(&mut secret).map_err(|fault| fault.to_string())?;

    let (mut engine, mut key, mut nonces) = (null_mut(), null_mut(), null_mut());
    let (plain, aad) = (*b"a message", *b"v1");
    let (mut sealed, mut opened) = ([0u8; 9], [0u8; 9]);
    let (mut tag, mut nonce) = ([0u8; 16], [0u8; 12]);
    unsafe {
        let mut ran: Ran = std::mem::zeroed();
        check(dael_engine_open(null(), &mut engine))?;
        check(dael_key_import(secret.as_ptr().cast(), secret.len(), &mut key))?;
        dael_wipe(secret.as_mut_ptr().cast(), secret.len());
        check(dael_nonces_make(b"me01".as_ptr(), 0, &mut nonces))?;

        check(dael_nonces_next(nonces, nonce.as_mut_ptr()))?;
        check(dael_gcm_seal(
            engine, key, nonce.as_ptr(), nonce.len(), aad.as_ptr(), aad.len(),
            plain.as_ptr(), sealed.as_mut_ptr(), plain.len(), tag.as_mut_ptr(), tag.len(), &mut ran,
        ))?;
        println!("sealed on {}", CStr::from_ptr(ran.backend.as_ptr()).to_string_lossy());

        let mut open = |sealed: &[u8]| {
            dael_gcm_open(
                engine, key, nonce.as_ptr(), nonce.len(), aad.as_ptr(), aad.len(),
                sealed.as_ptr(), opened.as_mut_ptr(), sealed.len(), tag.as_ptr(), tag.len(), null_mut(),
            )
        };
        sealed[3] ^= 1; // what an attacker, or a bad disk, might do
        let refused = open(&sealed) == AUTHENTICATION;
        println!("altered: {}", last_error());
        sealed[3] ^= 1;
        check(open(&sealed))?;
        println!("opened: {}", String::from_utf8_lossy(&opened));

        dael_engine_close(engine); // in any order
        dael_nonces_free(nonces);
        dael_key_free(key);
        if refused && opened == plain { Ok(()) } else { Err("not as it should be".into()) }
    }
}
