// SPDX-License-Identifier: Apache-2.0
// The words of the program: --help and the manual are made from these, and the tests run the
// examples.
#include <algorithm>
#include <array>
#include <cassert>

#include "commands.hpp"

namespace dael::cli {
namespace {

constexpr std::array kEncrypt{
    Example{"A file under a key", "daelstrom encrypt --key-file key notes.txt -o notes.aes"},
    Example{"In a pipe", "tar -c photos | daelstrom encrypt --key-file key > photos.tar.aes"},
    Example{"Exactly what openssl enc -aes-128-cbc -K 000102... -iv 0f0e0d... makes",
            "daelstrom encrypt --mode cbc --key-file key.hex --iv 0f0e0d0c0b0a09080706050403020100 "
            "notes.txt -o notes.cbc"},
    Example{"With a password, for openssl enc -d -aes-256-ctr -pbkdf2",
            "daelstrom encrypt --openssl --password-file password notes.txt -o notes.enc"},
    Example{"On the first GPU, or not at all",
            "daelstrom encrypt --backend cuda --key-file key notes.txt -o notes.gpu"},
};
constexpr std::array kDecrypt{
    Example{"What `daelstrom encrypt` made",
            "daelstrom decrypt --key-file key notes.aes -o notes.out"},
    Example{"In a pipe", "daelstrom decrypt --key-file key photos.tar.aes | tar -t"},
    Example{"What openssl enc -aes-256-cbc -pbkdf2 -iter 100000 made",
            "daelstrom decrypt --openssl --mode cbc --iterations 100000 --password-file password "
            "secret.enc -o secret.txt"},
};
constexpr std::array kProvider{
    Example{"What the provider is, where it lies, how it is set", "daelstrom provider status"},
    Example{"A configuration for it", "daelstrom provider install --config daelstrom-openssl.cnf"},
    Example{"Whether a program would use it",
            "OPENSSL_CONF=daelstrom-openssl.cnf daelstrom provider doctor openssl"},
    Example{"Away with it", "daelstrom provider uninstall --config daelstrom-openssl.cnf"},
};
constexpr std::array kSeal{
    Example{"With a passphrase, which is asked for on the terminal if it is not in a file",
            "daelstrom seal --passphrase-file passphrase notes.txt"},
    Example{
        "For others, each of whom opens it with an identity of age's",
        "daelstrom seal -r age1cy0su9fwf3gf9mw868g5yut09p6nytfmmnktexz2ya5uqg9vl9sss4euqm -R team "
        "notes.txt -o notes.team"},
    Example{"With a key, for whoever has Tink and the key",
            "daelstrom seal --key-file key notes.txt -o notes.tink"},
    Example{"In a pipe, bound to a name",
            "tar -c photos | daelstrom seal --key-file key --aad photos > photos.sealed"},
    Example{"All files in a folder, each for itself, into another folder",
            "daelstrom seal --key-file key --recursive photos --output-dir backup"},
};
constexpr std::array kOpen{
    Example{"What `daelstrom seal` made",
            "daelstrom open --passphrase-file passphrase notes.txt.sealed -o notes.opened"},
    Example{"What was sealed for you", "daelstrom open -i identity notes.team -o notes.mine"},
    Example{"The first hundred bytes, without reading the rest",
            "daelstrom open --key-file key --range 0-99 notes.tink"},
    Example{"In a pipe: pipefail says whether all of it was verified",
            "set -o pipefail; daelstrom open --key-file key --aad photos -o - photos.sealed | tar "
            "-t"},
    Example{"A folder of sealed files",
            "daelstrom open --key-file key --recursive backup --output-dir restored"},
};
constexpr std::array kRewrap{
    Example{"For other recipients, in place", "daelstrom rewrap -i identity -R team notes.team"},
    Example{"Another passphrase, in place",
            "daelstrom rewrap --passphrase-file passphrase --new-passphrase-file better "
            "notes.txt.sealed"},
};
constexpr std::array kReseal{
    Example{"Another key", "daelstrom reseal --key-file key --new-key-file new-key notes.tink"},
};
constexpr std::array kKeygen{
    Example{"A key of 256 bits, which only you can read", "daelstrom keygen -o new-key"},
    Example{"In hexadecimal, of 128 bits",
            "daelstrom keygen --format hex --bits 128 -o new-key.hex"},
    Example{"A keyset of Tink's", "daelstrom keygen --format keyset -o keys.json"},
    Example{
        "An identity of age's, and a file that only it opens",
        "daelstrom seal -r $(daelstrom keygen --format age -o me.txt) notes.txt -o notes.to-me"},
};
constexpr std::array kKeyset{
    Example{"What is in it, without a secret", "daelstrom keyset list keys.json"},
    Example{"A new key that opens already, and from then on seals",
            "new=$(daelstrom keyset add keys.json) && daelstrom keyset promote keys.json $new"},
};
constexpr std::array kInfo{
    Example{"What these files look like", "daelstrom info notes.txt.sealed notes.tink keys.json"},
    Example{"The same for a program", "daelstrom info --json notes.txt.sealed"},
};
constexpr std::array kDevices{
    Example{"What this machine has, and what is missing for the rest", "daelstrom devices"},
    Example{"The same for a program", "daelstrom devices --json"},
};
constexpr std::array kCalibrate{
    Example{"Measure this machine once", "daelstrom calibrate"},
};
constexpr std::array kExplain{
    Example{"Where 64 MiB of ordinary memory would be encrypted, and why",
            "daelstrom explain --size 64M --from host"},
    Example{"What every device and the cores would do together",
            "daelstrom explain --size 1G --device all"},
    Example{"A file of 2 GiB that is sealed", "daelstrom explain --size 2G --mode seal"},
    Example{"A thousand short messages", "daelstrom explain --size 4K --messages 1000 --mode cbc"},
};
constexpr std::array kCompletion{
    Example{"For this shell, bash", "source <(daelstrom completion bash)"},
    Example{"For every zsh, in a directory of $fpath", "daelstrom completion zsh > _daelstrom"},
    Example{"For every fish", "daelstrom completion fish > daelstrom.fish"},
};
constexpr std::array kBench{
    Example{"Every backend, in seconds", "daelstrom bench"},
    Example{"CTR with 256-bit keys on one core and on all, and the figures in a file",
            "daelstrom bench --backend cpu --mode ctr --bits 256 --json figures.json"},
};

constexpr std::array kLab{
    Example{"The studies", "daelstrom lab list"},
    Example{"A small run of two, and their documents",
            "daelstrom lab run placement picture --quick --out runs"},
    Example{"A page of them", "daelstrom lab report runs -o report.html"},
};

constexpr std::array kFlexa{
    Example{"Three folders on three disks, and a keyring for them",
            "daelstrom flexa init /mnt/a/files /mnt/b/files /mnt/c/files"},
    Example{
        "A file, put there and got again",
        "daelstrom flexa put notes.txt texts/notes && daelstrom flexa get texts/notes copy.txt"},
    Example{"What somebody else needs to read a folder",
            "daelstrom flexa share texts for-you.share --read"},
    Example{"After a disk was lost", "daelstrom flexa repair"},
};

constexpr std::array kVpn{
    Example{"A key for this end, whose public half is for the other's configuration",
            "daelstrom vpn genkey -o private.key"},
    Example{"That public half again", "daelstrom vpn pubkey private.key"},
    Example{"Every fault of a configuration", "daelstrom vpn check tunnel.toml"},
    Example{"Start, look, end",
            "daelstrom vpn up --daemon tunnel.toml && daelstrom vpn status tunnel.toml && "
            "daelstrom vpn down tunnel.toml"},
    Example{"Two ends and one secret: here the one that waits", "daelstrom vpn -s 4500 -i secret"},
    Example{"And there the one that calls it", "daelstrom vpn -c vpn.example:4500 -i secret"},
};

constexpr std::array kHelp{
    Example{"How a file is sealed", "daelstrom help seal"},
};

constexpr std::array kTexts{
    CommandText{
        "seal", "Encrypt a file or a stream so that every change to it is noticed",
        "The output is what Tink's streaming AEAD AES-GCM-HKDF makes of it: segments of "
        "AES-GCM, each verified before any of it is released. With --key-file or --keyset it is "
        "exactly that; for recipients (-r, -R) or with a passphrase, a small age file in front "
        "holds the key, which age -d takes out.\n\n"
        "Associated data (--aad) is not stored: it binds the file to what you say, a name or a "
        "version, and opening takes the same. --bind-names binds each file to its own name, in "
        "folders with the path from the one that is named on, so that files which were renamed, "
        "moved or exchanged do not open.\n\n"
        "Each input gets an output of its own: INPUT.sealed, or what -o says for a single one, or "
        "the same names in --output-dir. Many files go through every core at once, and what fails "
        "with one is told and does not keep the others from being done; the exit status is then "
        "1. Links and what is no regular file are left alone in folders, as are files that end in "
        ".sealed already. An output that exists is refused without -f.\n\n"
        "All files of a call with a passphrase share what stands in front and the key in it, so "
        "that "
        "scrypt is paid for once; for recipients each file has a key of its own.",
        kSeal},
    CommandText{
        "open", "Verify and decrypt what seal made",
        "A flipped bit, a missing or moved part, something added at the end, another key or "
        "other associated data: all are refused, and the message names the segment. An output "
        "file appears only when all of the input is verified.\n\n"
        "On standard output (-o -), verified segments go out before the end is known to be there: "
        "check the exit status before you use what you got. A terminal gets plain text alone, "
        "unless -o - asks for the rest.\n\n"
        "Each input gets an output of its own: its name without .sealed, or what -o says for a "
        "single one, or the same names in --output-dir. Of folders (--recursive), files whose "
        "names end in .sealed are taken.\n\n"
        "With --range, which writes to standard output unless -o says otherwise, only the segments "
        "that the range touches are read and verified; one that reaches the end verifies the end.",
        kOpen},
    CommandText{
        "rewrap", "Change for whom files are sealed, or their passphrase",
        "Takes what opens the file (-i, or the passphrase so far) and what shall open it (-r, -R, "
        "or a new passphrase). Only what stands in front changes. Each file is written anew and "
        "takes the old one's place in one step. Whoever has kept the old file and could open it "
        "still can, and has the key of the new one: reseal -i -r gives each file another. Of "
        "folders "
        "(--recursive), files whose names end in .sealed are taken. For files that were sealed "
        "with a "
        "key there is reseal.",
        kRewrap},
    CommandText{
        "reseal", "Seal files anew under another key, in their places",
        "Each file is opened with any enabled key of the keyset and sealed with its primary one, "
        "or opened with --key-file and sealed with --new-key-file; or opened with an identity (-i) "
        "and sealed for recipients (-r, -R) under a key of its own, which who could open the old "
        "file "
        "does not have. All of it is verified before "
        "the new file takes the old one's place, in one step. Files that the new key opens "
        "already stay as they are, so that a call which was interrupted can be repeated.\n\n"
        "Of folders (--recursive), files whose names end in .sealed are taken. The associated "
        "data is the same before and after. Whoever has kept the old file and the old key can "
        "still open that.",
        kReseal},
    CommandText{
        "keygen", "Make a new random key",
        "The file can be read by you alone, and one that exists is never overwritten without -f. "
        "Keep a copy where you will find it: what was encrypted with a key that is lost is lost "
        "with it.",
        kKeygen},
    CommandText{
        "keyset", "Make, list and change keysets of Tink's",
        "A keyset holds several keys, each with a number. The primary one seals, and every enabled "
        "one opens. create makes a keyset with one new key. add puts in a new key and prints its "
        "number; promote makes a key the primary one; disable, enable and delete do what they say "
        "with a key that is not the primary one. list shows everything but the secrets.\n\n"
        "A file is changed in place, in one step, and keeps its owner and permissions.\n\n"
        "To take turns with keys: add a key and bring the keyset to everybody who opens; promote "
        "it; seal anew what was sealed with the old key; then disable that.",
        kKeyset},
    CommandText{
        "info", "Say what files look like",
        "Recognises what seal makes, age's files, what openssl enc makes with a password, and "
        "keysets, with what can be told without a key: sizes, segments, kinds of recipients, what "
        "a passphrase costs. Nothing of that is verified, and no secret is printed. Reads no more "
        "than the beginning.\n\n"
        "A stream that was sealed with a key has no mark of its own: by chance, one file of random "
        "bytes in 128 looks like one. What encrypt makes looks like random bytes.",
        kInfo},
    CommandText{
        "encrypt", "Encrypt a file or a stream",
        "Without --iv, a random IV is made and stored in the first 16 bytes of the output, where "
        "decrypt finds it (ECB has none). With --iv, the output is exactly that of `openssl enc "
        "-K -iv`. Never use one key and IV for two files in CTR or OFB.\n\n"
        "None of these modes authenticates: whoever can change the ciphertext can change what "
        "it decrypts to. Use `daelstrom seal` where that matters.\n\n"
        "The output file appears under its name only once it is complete; nothing is left behind "
        "after an error or Ctrl-C.",
        kEncrypt},
    CommandText{
        "decrypt", "Decrypt a file or a stream",
        "Takes what encrypt made, with the same mode and key. Without --iv, the IV is read from "
        "the first 16 bytes. What seal, age or `openssl enc` with a password made is refused, as "
        "far as it can be told: it would become garbage.\n\n"
        "With an output file, wrong padding leaves no file. On standard output, everything but "
        "the last buffer has gone out by the time that the padding is seen to be wrong: check "
        "the exit status before you use what you got.",
        kDecrypt},
    CommandText{"devices", "List every backend, and what this machine has of it",
                "The first word of a line is what --backend takes.", kDevices},
    CommandText{
        "calibrate", "Measure this machine, so that auto chooses by its figures",
        "Takes some seconds, with a GPU more, during which nothing else should run. The figures "
        "are stored under the user's cache directory; without them, built-in ones serve.",
        kCalibrate},
    CommandText{
        "explain", "Say which way a job would take, and why",
        "Prints the plan of the engine with the figures that it goes by, and the other ways "
        "that it has weighed. Nothing is encrypted. --mode seal is for what seal does: a message "
        "of AES-GCM for each segment. Where no way can do the job, the exit status is 1.",
        kExplain},
    CommandText{"completion", "Print completion for bash, zsh or fish", "", kCompletion},
    CommandText{"help", "Show the help of a command",
                "`daelstrom help COMMAND` is `daelstrom COMMAND --help`.", kHelp},
    CommandText{"man",
                "Print the manual page, in roff",
                "The packages install it. From a build: daelstrom man | man -l -",
                {}},
    CommandText{
        "bench", "Measure how fast each backend is",
        "By backend, mode, key size and message size, in gigabytes (10^9) a second, each held "
        "against a ceiling that is measured in the same turns: the library called directly, "
        "memcpy, a copy within device memory, copies both ways over the bus. Outputs are compared "
        "with OpenSSL's first. Leave the machine alone meanwhile.",
        kBench},
    CommandText{
        "lab", "Repeat the measurements of the systems that daelstrom comes from",
        "list names the studies and what each asks. run runs them, or all of them, prints a table "
        "of each, and with --out writes a document of each, with every sample, into a folder. "
        "compare holds two runs against each other, row by row. report makes one page of HTML of a "
        "folder of documents, by daelstrom's Python package. What the machine lacks, a GPU for "
        "one, is left out with a line; outputs are compared with OpenSSL's before they are timed. "
        "The studies are a program of their own, daelstrom-lab, which lies beside this one. It has "
        "exhibits too, each with a --help: encrypt and decrypt take the backend opengl, which is "
        "AES by drawing, as on a graphics card of 2004; devices lists it; and aes (`daelstrom "
        "aes`) "
        "takes a password as the program of a thesis of 2011 did.",
        kLab},
    CommandText{
        "flexa", "Keep files on three stores of which one may fail",
        "Files are sealed here and cut in three portions, of which each store holds two: any one "
        "of them may be lost, corrupted or lying. A store is a folder, or what Python's fsspec "
        "reaches: s3://, sftp://, webdav://. init makes a keyring, which is sealed with a "
        "passphrase or for an age recipient; without it nothing can be read again. share gives "
        "somebody what it takes to read a file or a folder, or to check it, and no more. verify "
        "reads everything and names the store that is at fault; repair makes good what one has "
        "lost.\n\n"
        "This is the Python package's: it is started as python3, or what DAELSTROM_PYTHON names, "
        "and says how to get it where it is missing.",
        kFlexa},
    CommandText{
        "vpn", "Join this machine and others by a tunnel",
        "A tunnel of IP packets over UDP: standard ESP with AES-256-GCM, under keys that the ends "
        "agree on every two minutes by Noise's handshake IK. Each end knows the others by their "
        "public keys, and takes from each only packets of addresses that its configuration allows "
        "to it.\n\n"
        "up starts a tunnel from a configuration in TOML, and runs until it is ended: by down, by "
        "Ctrl-C, or by whatever ends the process. The interface, its addresses and its routes go "
        "with it. It takes root, or CAP_NET_ADMIN, to start, and gives up all rights once it runs. "
        "status says how a running one fares. check finds every fault of a configuration. genkey "
        "makes a private key, and pubkey prints the public key of one.\n\n"
        "The short form needs no configuration: a file with a secret, the same at both ends, from "
        "which each derives its keys and the other's. The end with -s is 10.86.41.1 and "
        "fdda:e157:726f::1, the one with -c 10.86.41.2 and fdda:e157:726f::2, on the interface "
        "dael0. The secret has 16 bytes at least; what genkey prints will do.",
        kVpn},
    CommandText{
        "provider", "Give programs that use OpenSSL this program's AES",
        "daelstrom.so is a provider for OpenSSL 3. status loads it and prints what it says of "
        "itself. install writes a configuration that activates it beside OpenSSL's own; programs "
        "use it that are started with OPENSSL_CONF. Nothing of the system is changed. uninstall "
        "removes that file. doctor says whether programs that start here get AES from daelstrom, "
        "and what stands against it; the exit status is 1 if something does. Given a program, it "
        "looks at that too.",
        kProvider},
};

}  // namespace

std::span<const CommandText> command_texts() {
    return kTexts;
}

const CommandText& text_of(std::string_view command) {
    const auto* found = std::ranges::find(kTexts, command, &CommandText::name);
    assert(found != kTexts.end() && "every command has its words here");
    return *found;
}

std::string_view program_details() {
    return "`daelstrom seal` encrypts a file so that every change to it is noticed, and `daelstrom "
           "open` verifies and decrypts it. encrypt and decrypt are for those whom another program "
           "tells which mode to use.\n\n"
           "The cipher runs on the CPU or on a GPU, whichever is fastest for the data at hand. "
           "`daelstrom COMMAND --help` explains a command and shows examples.";
}

namespace {

CLI::App* add(CLI::App& app, const CommandText& text) {
    CLI::App* command = app.add_subcommand(std::string(text.name), std::string(text.summary));
    command->get_help_ptr()->description("Show this help and exit");
    command->allow_extras();  // main() refuses them, without echoing what may be a secret
    return command;
}

}  // namespace

CLI::App* add_command(CLI::App& app, std::string_view name) {
    return add(app, text_of(name));
}

CLI::App* add_command(CLI::App& app, Context& context, const CommandText& text) {
    CLI::App* command = add(app, text);
    context.texts[command] = &text;
    return command;
}

}  // namespace dael::cli
