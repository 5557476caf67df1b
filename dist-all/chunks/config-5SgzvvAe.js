import { o as __toESM, t as __commonJSMin } from "./rolldown-runtime-C1I3wEg2.js";
import { g as InvalidSetting, n as requireConcurrency, o as Command, s as CommanderError, t as ledgerSource } from "./ledger-Bul7BDb8.js";
import { a as splitList, i as parseJsonObject, n as daysInMs, o as withoutLogin, r as parseHost, t as MEBIBYTE } from "./parse-values-B-GwPNi9.js";
import { t as OPTIONS } from "./flags-UNePc90E.js";
import { r as sharedDirectories } from "./shared-folders-RGsbpqTI.js";
import { r as filesSource } from "./files-DAs3HDrE.js";
import { n as tracingSettings } from "./stop-signal-73okoSDz.js";
import { r as upstreamOf, t as objectInfoSource } from "./upstream-Bm9W3w72.js";
import { t as packageVersion } from "./version-eXUY6IRP.js";
import { join, resolve } from "node:path";
import { existsSync, readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
// node_modules/forwarded/index.js
/*!
* forwarded
* Copyright(c) 2014-2017 Douglas Christopher Wilson
* MIT Licensed
*/
var require_forwarded = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	/**
	* Module exports.
	* @public
	*/
	module.exports = forwarded;
	/**
	* Get all addresses in the request, using the `X-Forwarded-For` header.
	*
	* @param {object} req
	* @return {array}
	* @public
	*/
	function forwarded(req) {
		if (!req) throw new TypeError("argument req is required");
		var proxyAddrs = parse(req.headers["x-forwarded-for"] || "");
		return [getSocketAddr(req)].concat(proxyAddrs);
	}
	/**
	* Get the socket address for a request.
	*
	* @param {object} req
	* @return {string}
	* @private
	*/
	function getSocketAddr(req) {
		return req.socket ? req.socket.remoteAddress : req.connection.remoteAddress;
	}
	/**
	* Parse the X-Forwarded-For header.
	*
	* @param {string} header
	* @private
	*/
	function parse(header) {
		var end = header.length;
		var list = [];
		var start = header.length;
		for (var i = header.length - 1; i >= 0; i--) switch (header.charCodeAt(i)) {
			case 32:
				if (start === end) start = end = i;
				break;
			case 44:
				if (start !== end) list.push(header.substring(start, end));
				start = end = i;
				break;
			default: start = i;
		}
		if (start !== end) list.push(header.substring(start, end));
		return list;
	}
}));
// node_modules/ipaddr.js/lib/ipaddr.js
var require_ipaddr = /* @__PURE__ */ __commonJSMin(((exports, module, this$1) => {
	(function() {
		var expandIPv6, ipaddr = {}, ipv4Part, ipv4Regexes, ipv6Part, ipv6Regexes, matchCIDR, root = this, zoneIndex;
		if (typeof module !== "undefined" && module !== null && module.exports) module.exports = ipaddr;
		else root["ipaddr"] = ipaddr;
		matchCIDR = function(first, second, partSize, cidrBits) {
			var part, shift;
			if (first.length !== second.length) throw new Error("ipaddr: cannot match CIDR for objects with different lengths");
			part = 0;
			while (cidrBits > 0) {
				shift = partSize - cidrBits;
				if (shift < 0) shift = 0;
				if (first[part] >> shift !== second[part] >> shift) return false;
				cidrBits -= partSize;
				part += 1;
			}
			return true;
		};
		ipaddr.subnetMatch = function(address, rangeList, defaultName) {
			var k, len, rangeName, rangeSubnets, subnet;
			if (defaultName == null) defaultName = "unicast";
			for (rangeName in rangeList) {
				rangeSubnets = rangeList[rangeName];
				if (rangeSubnets[0] && !(rangeSubnets[0] instanceof Array)) rangeSubnets = [rangeSubnets];
				for (k = 0, len = rangeSubnets.length; k < len; k++) {
					subnet = rangeSubnets[k];
					if (address.kind() === subnet[0].kind()) {
						if (address.match.apply(address, subnet)) return rangeName;
					}
				}
			}
			return defaultName;
		};
		ipaddr.IPv4 = (function() {
			function IPv4(octets) {
				var k, len, octet;
				if (octets.length !== 4) throw new Error("ipaddr: ipv4 octet count should be 4");
				for (k = 0, len = octets.length; k < len; k++) {
					octet = octets[k];
					if (!(0 <= octet && octet <= 255)) throw new Error("ipaddr: ipv4 octet should fit in 8 bits");
				}
				this.octets = octets;
			}
			IPv4.prototype.kind = function() {
				return "ipv4";
			};
			IPv4.prototype.toString = function() {
				return this.octets.join(".");
			};
			IPv4.prototype.toNormalizedString = function() {
				return this.toString();
			};
			IPv4.prototype.toByteArray = function() {
				return this.octets.slice(0);
			};
			IPv4.prototype.match = function(other, cidrRange) {
				var ref;
				if (cidrRange === void 0) ref = other, other = ref[0], cidrRange = ref[1];
				if (other.kind() !== "ipv4") throw new Error("ipaddr: cannot match ipv4 address with non-ipv4 one");
				return matchCIDR(this.octets, other.octets, 8, cidrRange);
			};
			IPv4.prototype.SpecialRanges = {
				unspecified: [[new IPv4([
					0,
					0,
					0,
					0
				]), 8]],
				broadcast: [[new IPv4([
					255,
					255,
					255,
					255
				]), 32]],
				multicast: [[new IPv4([
					224,
					0,
					0,
					0
				]), 4]],
				linkLocal: [[new IPv4([
					169,
					254,
					0,
					0
				]), 16]],
				loopback: [[new IPv4([
					127,
					0,
					0,
					0
				]), 8]],
				carrierGradeNat: [[new IPv4([
					100,
					64,
					0,
					0
				]), 10]],
				"private": [
					[new IPv4([
						10,
						0,
						0,
						0
					]), 8],
					[new IPv4([
						172,
						16,
						0,
						0
					]), 12],
					[new IPv4([
						192,
						168,
						0,
						0
					]), 16]
				],
				reserved: [
					[new IPv4([
						192,
						0,
						0,
						0
					]), 24],
					[new IPv4([
						192,
						0,
						2,
						0
					]), 24],
					[new IPv4([
						192,
						88,
						99,
						0
					]), 24],
					[new IPv4([
						198,
						51,
						100,
						0
					]), 24],
					[new IPv4([
						203,
						0,
						113,
						0
					]), 24],
					[new IPv4([
						240,
						0,
						0,
						0
					]), 4]
				]
			};
			IPv4.prototype.range = function() {
				return ipaddr.subnetMatch(this, this.SpecialRanges);
			};
			IPv4.prototype.toIPv4MappedAddress = function() {
				return ipaddr.IPv6.parse("::ffff:" + this.toString());
			};
			IPv4.prototype.prefixLengthFromSubnetMask = function() {
				var cidr, i, k, octet, stop, zeros, zerotable = {
					0: 8,
					128: 7,
					192: 6,
					224: 5,
					240: 4,
					248: 3,
					252: 2,
					254: 1,
					255: 0
				};
				cidr = 0;
				stop = false;
				for (i = k = 3; k >= 0; i = k += -1) {
					octet = this.octets[i];
					if (octet in zerotable) {
						zeros = zerotable[octet];
						if (stop && zeros !== 0) return null;
						if (zeros !== 8) stop = true;
						cidr += zeros;
					} else return null;
				}
				return 32 - cidr;
			};
			return IPv4;
		})();
		ipv4Part = "(0?\\d+|0x[a-f0-9]+)";
		ipv4Regexes = {
			fourOctet: new RegExp("^" + ipv4Part + "\\." + ipv4Part + "\\." + ipv4Part + "\\." + ipv4Part + "$", "i"),
			longValue: new RegExp("^" + ipv4Part + "$", "i")
		};
		ipaddr.IPv4.parser = function(string) {
			var match, parseIntAuto = function(string) {
				if (string[0] === "0" && string[1] !== "x") return parseInt(string, 8);
				else return parseInt(string);
			}, part, shift, value;
			if (match = string.match(ipv4Regexes.fourOctet)) return (function() {
				var k, len, ref = match.slice(1, 6), results = [];
				for (k = 0, len = ref.length; k < len; k++) {
					part = ref[k];
					results.push(parseIntAuto(part));
				}
				return results;
			})();
			else if (match = string.match(ipv4Regexes.longValue)) {
				value = parseIntAuto(match[1]);
				if (value > 4294967295 || value < 0) throw new Error("ipaddr: address outside defined range");
				return (function() {
					var k, results = [];
					for (shift = k = 0; k <= 24; shift = k += 8) results.push(value >> shift & 255);
					return results;
				})().reverse();
			} else return null;
		};
		ipaddr.IPv6 = (function() {
			function IPv6(parts, zoneId) {
				var i, k, l, len, part, ref;
				if (parts.length === 16) {
					this.parts = [];
					for (i = k = 0; k <= 14; i = k += 2) this.parts.push(parts[i] << 8 | parts[i + 1]);
				} else if (parts.length === 8) this.parts = parts;
				else throw new Error("ipaddr: ipv6 part count should be 8 or 16");
				ref = this.parts;
				for (l = 0, len = ref.length; l < len; l++) {
					part = ref[l];
					if (!(0 <= part && part <= 65535)) throw new Error("ipaddr: ipv6 part should fit in 16 bits");
				}
				if (zoneId) this.zoneId = zoneId;
			}
			IPv6.prototype.kind = function() {
				return "ipv6";
			};
			IPv6.prototype.toString = function() {
				return this.toNormalizedString().replace(/((^|:)(0(:|$))+)/, "::");
			};
			IPv6.prototype.toRFC5952String = function() {
				var bestMatchIndex, bestMatchLength, match, regex = /((^|:)(0(:|$)){2,})/g, string = this.toNormalizedString();
				bestMatchIndex = 0;
				bestMatchLength = -1;
				while (match = regex.exec(string)) if (match[0].length > bestMatchLength) {
					bestMatchIndex = match.index;
					bestMatchLength = match[0].length;
				}
				if (bestMatchLength < 0) return string;
				return string.substring(0, bestMatchIndex) + "::" + string.substring(bestMatchIndex + bestMatchLength);
			};
			IPv6.prototype.toByteArray = function() {
				var bytes = [], k, len, part, ref = this.parts;
				for (k = 0, len = ref.length; k < len; k++) {
					part = ref[k];
					bytes.push(part >> 8);
					bytes.push(part & 255);
				}
				return bytes;
			};
			IPv6.prototype.toNormalizedString = function() {
				var addr = (function() {
					var k, len, ref = this.parts, results = [];
					for (k = 0, len = ref.length; k < len; k++) {
						part = ref[k];
						results.push(part.toString(16));
					}
					return results;
				}).call(this).join(":"), part, suffix = "";
				if (this.zoneId) suffix = "%" + this.zoneId;
				return addr + suffix;
			};
			IPv6.prototype.toFixedLengthString = function() {
				var addr = (function() {
					var k, len, ref = this.parts, results = [];
					for (k = 0, len = ref.length; k < len; k++) {
						part = ref[k];
						results.push(part.toString(16).padStart(4, "0"));
					}
					return results;
				}).call(this).join(":"), part, suffix = "";
				if (this.zoneId) suffix = "%" + this.zoneId;
				return addr + suffix;
			};
			IPv6.prototype.match = function(other, cidrRange) {
				var ref;
				if (cidrRange === void 0) ref = other, other = ref[0], cidrRange = ref[1];
				if (other.kind() !== "ipv6") throw new Error("ipaddr: cannot match ipv6 address with non-ipv6 one");
				return matchCIDR(this.parts, other.parts, 16, cidrRange);
			};
			IPv6.prototype.SpecialRanges = {
				unspecified: [new IPv6([
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					0
				]), 128],
				linkLocal: [new IPv6([
					65152,
					0,
					0,
					0,
					0,
					0,
					0,
					0
				]), 10],
				multicast: [new IPv6([
					65280,
					0,
					0,
					0,
					0,
					0,
					0,
					0
				]), 8],
				loopback: [new IPv6([
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					1
				]), 128],
				uniqueLocal: [new IPv6([
					64512,
					0,
					0,
					0,
					0,
					0,
					0,
					0
				]), 7],
				ipv4Mapped: [new IPv6([
					0,
					0,
					0,
					0,
					0,
					65535,
					0,
					0
				]), 96],
				rfc6145: [new IPv6([
					0,
					0,
					0,
					0,
					65535,
					0,
					0,
					0
				]), 96],
				rfc6052: [new IPv6([
					100,
					65435,
					0,
					0,
					0,
					0,
					0,
					0
				]), 96],
				"6to4": [new IPv6([
					8194,
					0,
					0,
					0,
					0,
					0,
					0,
					0
				]), 16],
				teredo: [new IPv6([
					8193,
					0,
					0,
					0,
					0,
					0,
					0,
					0
				]), 32],
				reserved: [[new IPv6([
					8193,
					3512,
					0,
					0,
					0,
					0,
					0,
					0
				]), 32]]
			};
			IPv6.prototype.range = function() {
				return ipaddr.subnetMatch(this, this.SpecialRanges);
			};
			IPv6.prototype.isIPv4MappedAddress = function() {
				return this.range() === "ipv4Mapped";
			};
			IPv6.prototype.toIPv4Address = function() {
				var high, low, ref;
				if (!this.isIPv4MappedAddress()) throw new Error("ipaddr: trying to convert a generic ipv6 address to ipv4");
				ref = this.parts.slice(-2), high = ref[0], low = ref[1];
				return new ipaddr.IPv4([
					high >> 8,
					high & 255,
					low >> 8,
					low & 255
				]);
			};
			IPv6.prototype.prefixLengthFromSubnetMask = function() {
				var cidr, i, k, part, stop, zeros, zerotable = {
					0: 16,
					32768: 15,
					49152: 14,
					57344: 13,
					61440: 12,
					63488: 11,
					64512: 10,
					65024: 9,
					65280: 8,
					65408: 7,
					65472: 6,
					65504: 5,
					65520: 4,
					65528: 3,
					65532: 2,
					65534: 1,
					65535: 0
				};
				cidr = 0;
				stop = false;
				for (i = k = 7; k >= 0; i = k += -1) {
					part = this.parts[i];
					if (part in zerotable) {
						zeros = zerotable[part];
						if (stop && zeros !== 0) return null;
						if (zeros !== 16) stop = true;
						cidr += zeros;
					} else return null;
				}
				return 128 - cidr;
			};
			return IPv6;
		})();
		ipv6Part = "(?:[0-9a-f]+::?)+";
		zoneIndex = "%[0-9a-z]{1,}";
		ipv6Regexes = {
			zoneIndex: new RegExp(zoneIndex, "i"),
			"native": new RegExp("^(::)?(" + ipv6Part + ")?([0-9a-f]+)?(::)?(" + zoneIndex + ")?$", "i"),
			transitional: new RegExp("^((?:" + ipv6Part + ")|(?:::)(?:" + ipv6Part + ")?)" + (ipv4Part + "\\." + ipv4Part + "\\." + ipv4Part + "\\." + ipv4Part) + ("(" + zoneIndex + ")?$"), "i")
		};
		expandIPv6 = function(string, parts) {
			var colonCount, lastColon, part, replacement, replacementCount, zoneId;
			if (string.indexOf("::") !== string.lastIndexOf("::")) return null;
			zoneId = (string.match(ipv6Regexes["zoneIndex"]) || [])[0];
			if (zoneId) {
				zoneId = zoneId.substring(1);
				string = string.replace(/%.+$/, "");
			}
			colonCount = 0;
			lastColon = -1;
			while ((lastColon = string.indexOf(":", lastColon + 1)) >= 0) colonCount++;
			if (string.substr(0, 2) === "::") colonCount--;
			if (string.substr(-2, 2) === "::") colonCount--;
			if (colonCount > parts) return null;
			replacementCount = parts - colonCount;
			replacement = ":";
			while (replacementCount--) replacement += "0:";
			string = string.replace("::", replacement);
			if (string[0] === ":") string = string.slice(1);
			if (string[string.length - 1] === ":") string = string.slice(0, -1);
			parts = (function() {
				var k, len, ref = string.split(":"), results = [];
				for (k = 0, len = ref.length; k < len; k++) {
					part = ref[k];
					results.push(parseInt(part, 16));
				}
				return results;
			})();
			return {
				parts,
				zoneId
			};
		};
		ipaddr.IPv6.parser = function(string) {
			var addr, k, len, match, octet, octets, zoneId;
			if (ipv6Regexes["native"].test(string)) return expandIPv6(string, 8);
			else if (match = string.match(ipv6Regexes["transitional"])) {
				zoneId = match[6] || "";
				addr = expandIPv6(match[1].slice(0, -1) + zoneId, 6);
				if (addr.parts) {
					octets = [
						parseInt(match[2]),
						parseInt(match[3]),
						parseInt(match[4]),
						parseInt(match[5])
					];
					for (k = 0, len = octets.length; k < len; k++) {
						octet = octets[k];
						if (!(0 <= octet && octet <= 255)) return null;
					}
					addr.parts.push(octets[0] << 8 | octets[1]);
					addr.parts.push(octets[2] << 8 | octets[3]);
					return {
						parts: addr.parts,
						zoneId: addr.zoneId
					};
				}
			}
			return null;
		};
		ipaddr.IPv4.isIPv4 = ipaddr.IPv6.isIPv6 = function(string) {
			return this.parser(string) !== null;
		};
		ipaddr.IPv4.isValid = function(string) {
			try {
				new this(this.parser(string));
				return true;
			} catch (error1) {
				return false;
			}
		};
		ipaddr.IPv4.isValidFourPartDecimal = function(string) {
			if (ipaddr.IPv4.isValid(string) && string.match(/^(0|[1-9]\d*)(\.(0|[1-9]\d*)){3}$/)) return true;
			else return false;
		};
		ipaddr.IPv6.isValid = function(string) {
			var addr;
			if (typeof string === "string" && string.indexOf(":") === -1) return false;
			try {
				addr = this.parser(string);
				new this(addr.parts, addr.zoneId);
				return true;
			} catch (error1) {
				return false;
			}
		};
		ipaddr.IPv4.parse = function(string) {
			var parts = this.parser(string);
			if (parts === null) throw new Error("ipaddr: string is not formatted like ip address");
			return new this(parts);
		};
		ipaddr.IPv6.parse = function(string) {
			var addr = this.parser(string);
			if (addr.parts === null) throw new Error("ipaddr: string is not formatted like ip address");
			return new this(addr.parts, addr.zoneId);
		};
		ipaddr.IPv4.parseCIDR = function(string) {
			var maskLength, match, parsed;
			if (match = string.match(/^(.+)\/(\d+)$/)) {
				maskLength = parseInt(match[2]);
				if (maskLength >= 0 && maskLength <= 32) {
					parsed = [this.parse(match[1]), maskLength];
					Object.defineProperty(parsed, "toString", { value: function() {
						return this.join("/");
					} });
					return parsed;
				}
			}
			throw new Error("ipaddr: string is not formatted like an IPv4 CIDR range");
		};
		ipaddr.IPv4.subnetMaskFromPrefixLength = function(prefix) {
			var filledOctetCount, j, octets;
			prefix = parseInt(prefix);
			if (prefix < 0 || prefix > 32) throw new Error("ipaddr: invalid IPv4 prefix length");
			octets = [
				0,
				0,
				0,
				0
			];
			j = 0;
			filledOctetCount = Math.floor(prefix / 8);
			while (j < filledOctetCount) {
				octets[j] = 255;
				j++;
			}
			if (filledOctetCount < 4) octets[filledOctetCount] = Math.pow(2, prefix % 8) - 1 << 8 - prefix % 8;
			return new this(octets);
		};
		ipaddr.IPv4.broadcastAddressFromCIDR = function(string) {
			var cidr, i, ipInterfaceOctets, octets, subnetMaskOctets;
			try {
				cidr = this.parseCIDR(string);
				ipInterfaceOctets = cidr[0].toByteArray();
				subnetMaskOctets = this.subnetMaskFromPrefixLength(cidr[1]).toByteArray();
				octets = [];
				i = 0;
				while (i < 4) {
					octets.push(parseInt(ipInterfaceOctets[i], 10) | parseInt(subnetMaskOctets[i], 10) ^ 255);
					i++;
				}
				return new this(octets);
			} catch (error1) {
				throw new Error("ipaddr: the address does not have IPv4 CIDR format");
			}
		};
		ipaddr.IPv4.networkAddressFromCIDR = function(string) {
			var cidr, i, ipInterfaceOctets, octets, subnetMaskOctets;
			try {
				cidr = this.parseCIDR(string);
				ipInterfaceOctets = cidr[0].toByteArray();
				subnetMaskOctets = this.subnetMaskFromPrefixLength(cidr[1]).toByteArray();
				octets = [];
				i = 0;
				while (i < 4) {
					octets.push(parseInt(ipInterfaceOctets[i], 10) & parseInt(subnetMaskOctets[i], 10));
					i++;
				}
				return new this(octets);
			} catch (error1) {
				throw new Error("ipaddr: the address does not have IPv4 CIDR format");
			}
		};
		ipaddr.IPv6.parseCIDR = function(string) {
			var maskLength, match, parsed;
			if (match = string.match(/^(.+)\/(\d+)$/)) {
				maskLength = parseInt(match[2]);
				if (maskLength >= 0 && maskLength <= 128) {
					parsed = [this.parse(match[1]), maskLength];
					Object.defineProperty(parsed, "toString", { value: function() {
						return this.join("/");
					} });
					return parsed;
				}
			}
			throw new Error("ipaddr: string is not formatted like an IPv6 CIDR range");
		};
		ipaddr.isValid = function(string) {
			return ipaddr.IPv6.isValid(string) || ipaddr.IPv4.isValid(string);
		};
		ipaddr.parse = function(string) {
			if (ipaddr.IPv6.isValid(string)) return ipaddr.IPv6.parse(string);
			else if (ipaddr.IPv4.isValid(string)) return ipaddr.IPv4.parse(string);
			else throw new Error("ipaddr: the address has neither IPv6 nor IPv4 format");
		};
		ipaddr.parseCIDR = function(string) {
			try {
				return ipaddr.IPv6.parseCIDR(string);
			} catch (error1) {
				try {
					return ipaddr.IPv4.parseCIDR(string);
				} catch (error1) {
					throw new Error("ipaddr: the address has neither IPv6 nor IPv4 CIDR format");
				}
			}
		};
		ipaddr.fromByteArray = function(bytes) {
			var length = bytes.length;
			if (length === 4) return new ipaddr.IPv4(bytes);
			else if (length === 16) return new ipaddr.IPv6(bytes);
			else throw new Error("ipaddr: the binary input is neither an IPv6 nor IPv4 address");
		};
		ipaddr.process = function(string) {
			var addr = this.parse(string);
			if (addr.kind() === "ipv6" && addr.isIPv4MappedAddress()) return addr.toIPv4Address();
			else return addr;
		};
	}).call(this$1);
}));
// node_modules/proxy-addr/index.js
/*!
* proxy-addr
* Copyright(c) 2014-2016 Douglas Christopher Wilson
* MIT Licensed
*/
var require_proxy_addr = /* @__PURE__ */ __commonJSMin(((exports, module) => {
	/**
	* Module exports.
	* @public
	*/
	module.exports = proxyaddr;
	module.exports.all = alladdrs;
	module.exports.compile = compile;
	/**
	* Module dependencies.
	* @private
	*/
	var forwarded = require_forwarded();
	var ipaddr = require_ipaddr();
	/**
	* Variables.
	* @private
	*/
	var DIGIT_REGEXP = /^[0-9]+$/;
	var isip = ipaddr.isValid;
	var parseip = ipaddr.parse;
	/**
	* Pre-defined IP ranges.
	* @private
	*/
	var IP_RANGES = {
		linklocal: ["169.254.0.0/16", "fe80::/10"],
		loopback: ["127.0.0.1/8", "::1/128"],
		uniquelocal: [
			"10.0.0.0/8",
			"172.16.0.0/12",
			"192.168.0.0/16",
			"fc00::/7"
		]
	};
	/**
	* Get all addresses in the request, optionally stopping
	* at the first untrusted.
	*
	* @param {Object} request
	* @param {Function|Array|String} [trust]
	* @public
	*/
	function alladdrs(req, trust) {
		var addrs = forwarded(req);
		if (!trust) return addrs;
		if (typeof trust !== "function") trust = compile(trust);
		for (var i = 0; i < addrs.length - 1; i++) {
			if (trust(addrs[i], i)) continue;
			addrs.length = i + 1;
		}
		return addrs;
	}
	/**
	* Compile argument into trust function.
	*
	* @param {Array|String} val
	* @private
	*/
	function compile(val) {
		if (!val) throw new TypeError("argument is required");
		var trust;
		if (typeof val === "string") trust = [val];
		else if (Array.isArray(val)) trust = val.slice();
		else throw new TypeError("unsupported trust argument");
		for (var i = 0; i < trust.length; i++) {
			val = trust[i];
			if (!Object.prototype.hasOwnProperty.call(IP_RANGES, val)) continue;
			val = IP_RANGES[val];
			trust.splice.apply(trust, [i, 1].concat(val));
			i += val.length - 1;
		}
		return compileTrust(compileRangeSubnets(trust));
	}
	/**
	* Compile `arr` elements into range subnets.
	*
	* @param {Array} arr
	* @private
	*/
	function compileRangeSubnets(arr) {
		var rangeSubnets = new Array(arr.length);
		for (var i = 0; i < arr.length; i++) rangeSubnets[i] = parseipNotation(arr[i]);
		return rangeSubnets;
	}
	/**
	* Compile range subnet array into trust function.
	*
	* @param {Array} rangeSubnets
	* @private
	*/
	function compileTrust(rangeSubnets) {
		var len = rangeSubnets.length;
		return len === 0 ? trustNone : len === 1 ? trustSingle(rangeSubnets[0]) : trustMulti(rangeSubnets);
	}
	/**
	* Parse IP notation string into range subnet.
	*
	* @param {String} note
	* @private
	*/
	function parseipNotation(note) {
		var pos = note.lastIndexOf("/");
		var str = pos !== -1 ? note.substring(0, pos) : note;
		if (!isip(str)) throw new TypeError("invalid IP address: " + str);
		var ip = parseip(str);
		if (pos === -1 && ip.kind() === "ipv6" && ip.isIPv4MappedAddress()) ip = ip.toIPv4Address();
		var max = ip.kind() === "ipv6" ? 128 : 32;
		var range = pos !== -1 ? note.substring(pos + 1, note.length) : null;
		if (range === null) range = max;
		else if (DIGIT_REGEXP.test(range)) range = parseInt(range, 10);
		else if (ip.kind() === "ipv4" && isip(range)) range = parseNetmask(range);
		else range = null;
		if (range <= 0 || range > max) throw new TypeError("invalid range on address: " + note);
		return [ip, range];
	}
	/**
	* Parse netmask string into CIDR range.
	*
	* @param {String} netmask
	* @private
	*/
	function parseNetmask(netmask) {
		var ip = parseip(netmask);
		return ip.kind() === "ipv4" ? ip.prefixLengthFromSubnetMask() : null;
	}
	/**
	* Determine address of proxied request.
	*
	* @param {Object} request
	* @param {Function|Array|String} trust
	* @public
	*/
	function proxyaddr(req, trust) {
		if (!req) throw new TypeError("req argument is required");
		if (!trust) throw new TypeError("trust argument is required");
		var addrs = alladdrs(req, trust);
		return addrs[addrs.length - 1];
	}
	/**
	* Static trust function to trust nothing.
	*
	* @private
	*/
	function trustNone() {
		return false;
	}
	/**
	* Compile trust function for multiple subnets.
	*
	* @param {Array} subnets
	* @private
	*/
	function trustMulti(subnets) {
		return function trust(addr) {
			if (!isip(addr)) return false;
			var ip = parseip(addr);
			var ipconv;
			var kind = ip.kind();
			for (var i = 0; i < subnets.length; i++) {
				var subnet = subnets[i];
				var subnetip = subnet[0];
				var subnetkind = subnetip.kind();
				var subnetrange = subnet[1];
				var trusted = ip;
				if (kind !== subnetkind) {
					if (subnetkind === "ipv4" && !ip.isIPv4MappedAddress()) continue;
					if (!ipconv) ipconv = subnetkind === "ipv4" ? ip.toIPv4Address() : ip.toIPv4MappedAddress();
					trusted = ipconv;
				}
				if (trusted.match(subnetip, subnetrange)) return true;
			}
			return false;
		};
	}
	/**
	* Compile trust function for single subnet.
	*
	* @param {Object} subnet
	* @private
	*/
	function trustSingle(subnet) {
		var subnetip = subnet[0];
		var subnetkind = subnetip.kind();
		var subnetisipv4 = subnetkind === "ipv4";
		var subnetrange = subnet[1];
		return function trust(addr) {
			if (!isip(addr)) return false;
			var ip = parseip(addr);
			if (ip.kind() !== subnetkind) {
				if (subnetisipv4 && !ip.isIPv4MappedAddress()) return false;
				ip = subnetisipv4 ? ip.toIPv4Address() : ip.toIPv4MappedAddress();
			}
			return ip.match(subnetip, subnetrange);
		};
	}
}));
// src/config/frontend.ts
/** The folder of a front end; refused at the start when it has no `index.html`. */
function readFrontendRoot(folder) {
	if (folder === void 0) return void 0;
	const root = resolve(folder);
	if (folder !== "" && statsOf(join(root, "index.html"))?.isFile()) return root;
	throw new InvalidSetting(`option '--front-end-root' needs a folder with an index.html, not '${folder}'`);
}
/** Of what cannot be looked at it does not matter why. */
function statsOf(path) {
	try {
		return statSync(path);
	} catch {
		return;
	}
}
// src/config/deprecation.ts
const MAX_DELAY_MS = 6e4;
const KEYS = [
	"from",
	"to",
	"percent",
	"delay-ms",
	"client"
];
/** Reads the flags of v1's end. */
function deprecationSettings(flags) {
	const deprecatedAtMs = parseInstant(flags.deprecationDate, "--deprecation-date");
	const sunsetAtMs = flags.sunset === void 0 ? void 0 : parseInstant(flags.sunset, "--sunset");
	if (sunsetAtMs !== void 0 && sunsetAtMs < deprecatedAtMs) throw new InvalidSetting("option '--sunset' must not be earlier than --deprecation-date");
	return {
		deprecatedAtMs,
		sunsetAtMs,
		brownouts: (flags.brownout ?? []).flatMap((text) => text.split(";")).map(parseBrownout)
	};
}
function parseBrownout(spec) {
	const parts = parseParts(spec);
	const { from, to, percent, client } = parts;
	const fromMs = from === void 0 ? void 0 : parseInstant(from, optionPart("from"));
	const toMs = to === void 0 ? void 0 : parseInstant(to, optionPart("to"));
	if (fromMs !== void 0 && toMs !== void 0 && toMs <= fromMs) throw new InvalidSetting(`${optionPart("to")} must be later than its from`);
	const delayText = parts["delay-ms"];
	return {
		fromMs,
		toMs,
		percent: parseNumber("percent", percent ?? "100", {
			min: .01,
			max: 100
		}),
		delayMs: delayText && parseNumber("delay-ms", delayText, {
			min: 1,
			max: MAX_DELAY_MS
		}) || void 0,
		client
	};
}
function parseParts(spec) {
	const parts = {};
	for (const part of spec.split(",")) {
		const at = part.indexOf("=");
		const [key, value] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
		if (!isKey(key)) throw new InvalidSetting(`option '--brownout': '${part.trim()}' is none of ${KEYS.join("=, ")}=`);
		if (parts[key] !== void 0) throw new InvalidSetting(`${optionPart(key)} is given twice`);
		if (value === "") throw new InvalidSetting(`${optionPart(key)} is empty`);
		parts[key] = value;
	}
	return parts;
}
function isKey(text) {
	return KEYS.includes(text);
}
function optionPart(key) {
	return `option '--brownout': ${key}`;
}
function parseNumber(key, text, { min, max }) {
	const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
	if (value >= min && value <= max) return value;
	throw new InvalidSetting(`${optionPart(key)} must be a number from ${min} to ${max}, not '${text}'`);
}
const INSTANT = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;
/** A day (its beginning, in UTC), or a time with its zone: anything else means something else elsewhere. */
function parseInstant(text, option) {
	const [, year, month, day] = INSTANT.exec(text.trim()) ?? [];
	const ms = Date.parse(text.trim());
	const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate();
	if (year !== void 0 && !Number.isNaN(ms) && isDay === Number(day)) return ms;
	const name = option.startsWith("--") ? `option '${option}'` : option;
	throw new InvalidSetting(`${name} needs a date such as 2026-12-01 or 2026-12-01T10:00Z, not '${text.trim()}'`);
}
// src/config/models.ts
/** Reads the flags of the model router; a file that is not there is refused at once. */
function modelSettings(flags) {
	const { modelKeys: keysFile } = flags;
	if (keysFile !== void 0 && !existsSync(keysFile)) throw new InvalidSetting(`option '--model-keys': there is no file '${keysFile}'`);
	return {
		/** File of the keys that may call it; `undefined`: any key may, each as a workspace of its own. */
		keysFile,
		limits: {
			inFlight: flags.modelCalls,
			committedCents: flags.modelSpend,
			requestsPerMinute: flags.modelRate,
			deadlineMs: flags.modelTimeout * 1e3,
			...parseJsonObject("--model-limits", flags.modelLimits)
		}
	};
}
// src/config/proxy.ts
var import_proxy_addr = /* @__PURE__ */ __toESM(require_proxy_addr(), 1);
/**
* First segments of the server's own paths. A prefix of one of these could not be told from them;
* only Holdover's own page is taken care of (`/holdover`).
*/
const OWN_SEGMENTS = new Set("api embeddings experiment extensions features free global_subgraphs healthz history i18n internal interrupt metrics models node_replacements object_info prompt proxy queue readyz settings signed system_stats templates upload userdata users v1 v2 view view_metadata workflow_templates ws".split(" "));
function proxySettings({ publicUrl, trustProxy, allowedHosts }) {
	return {
		publicUrl: publicUrl === void 0 ? void 0 : readPublicUrl(publicUrl),
		trustedProxies: splitList(trustProxy).map(trustedProxy),
		allowedHosts: splitList(allowedHosts).map(allowedHost)
	};
}
function readPublicUrl(text) {
	const url = URL.canParse(text) ? new URL(text) : void 0;
	if (!(url && /^https?:$/.test(url.protocol) && url.username + url.password === "") || /[?#]/.test(text)) throw new InvalidSetting(`option '--public-url' needs an address such as https://example.com/comfy, not '${withoutLogin(text)}'`);
	const prefix = url.pathname.replace(/\/+$/, "");
	if (prefix.includes("//")) throw new InvalidSetting(`option '--public-url' has an empty segment in its path: '${text}'`);
	const [, first = "", ...laterSegments] = prefix.split("/");
	if (laterSegments.length === 0 && OWN_SEGMENTS.has(first)) throw new InvalidSetting(`option '--public-url' cannot end in /${first}: that is a path of Holdover's own. Leave it out, or choose another prefix`);
	return {
		origin: url.origin,
		prefix
	};
}
function trustedProxy(text) {
	try {
		import_proxy_addr.default.compile(text);
		return text;
	} catch {
		throw new InvalidSetting(`option '--trust-proxy' takes addresses such as 10.0.0.5 or 10.0.0.0/8, and "loopback", "linklocal" or "uniquelocal", not '${text}'`);
	}
}
function allowedHost(text) {
	const hasSubdomains = text.startsWith(".");
	const host = parseHost(hasSubdomains ? text.slice(1) : text);
	if (host) return {
		...host,
		hasSubdomains
	};
	throw new InvalidSetting(`option '--allowed-hosts' takes hosts such as comfy.example.com, comfy.example.com:8443 or .example.com (with all hosts below it), not '${text}'`);
}
// src/config/tls.ts
/** Both files or none; a pair that cannot work is refused at the start. */
function readTls({ tlsKeyfile, tlsCertfile }) {
	if (tlsKeyfile === void 0 && tlsCertfile === void 0) return void 0;
	if (tlsKeyfile === void 0 || tlsCertfile === void 0) throw new InvalidSetting("options '--tls-keyfile' and '--tls-certfile' need each other");
	const key = read("--tls-keyfile", tlsKeyfile);
	const cert = read("--tls-certfile", tlsCertfile);
	requireUsable("--tls-certfile", tlsCertfile, { cert });
	requireUsable("--tls-keyfile", tlsKeyfile, { key });
	try {
		createSecureContext({
			key,
			cert
		});
	} catch (error) {
		throw new InvalidSetting(`the key in '${tlsKeyfile}' does not belong to the certificate in '${tlsCertfile}' (${reasonOf(error)})`);
	}
	return {
		key,
		cert
	};
}
function read(option, path) {
	try {
		return readFileSync(path);
	} catch (error) {
		throw new InvalidSetting(`option '${option}': '${path}' cannot be read (${reasonOf(error)})`);
	}
}
function requireUsable(option, path, part) {
	try {
		createSecureContext(part);
	} catch (error) {
		throw new InvalidSetting(`option '${option}': '${path}' holds nothing usable (${reasonOf(error)})`);
	}
}
/** OpenSSL's reason without its place in the sources, or the system's code. */
function reasonOf(error) {
	const { reason, code, message } = error;
	return reason ?? code ?? message;
}
// src/config/config.ts
const OTHER_COMMANDS = `
Other commands (each has its own --help):
  holdover backup DIR        back up the data folder, also while the server runs
  holdover restore DIR       put a backup into an empty data folder
  holdover check             check the database and every file, list what no record names
  holdover import DIR        take over the files of a v1 server
  holdover migrate           copy the ledger into another one: SQLite to Redis, or back
  holdover report            show who still calls v1, and what v2 has in its place
  holdover trace -- COMMAND  run a v1 script and write its session down as v2 code
  holdover convert FILE      turn a v1 prompt or workflow into a v2 submission
  holdover worker            run jobs for servers that share a ledger in Redis`;
/** Reads flags and environment; a wrong one becomes one clear line and exit code 2. */
function parseConfig(argv, env, extendCommand = (command) => command.addHelpText("after", OTHER_COMMANDS)) {
	let text = "";
	const command = new Command("holdover").description("Keeps unchanged v1 workflow clients working on the v2 job API.").version(packageVersion()).exitOverride().configureOutput({
		writeOut: (chunk) => text += chunk,
		writeErr: (chunk) => text += chunk
	});
	for (const option of OPTIONS) command.addOption(option);
	extendCommand(command);
	try {
		withEnvironment(env, () => command.parse([...argv], { from: "user" }));
		return {
			kind: "config",
			config: configFrom(command.opts(), env)
		};
	} catch (error) {
		return exitFor(error, text);
	}
}
/** How a command line ends that could not be used; `printed` is what its parser has printed. */
function exitFor(error, printed) {
	if (error instanceof InvalidSetting) return {
		kind: "exit",
		code: 2,
		text: `error: ${error.message}\n`
	};
	if (!(error instanceof CommanderError)) throw error;
	if (error.exitCode === 0) return {
		kind: "exit",
		code: 0,
		text: printed
	};
	return {
		kind: "exit",
		code: 2,
		text: `${error.message.replaceAll("\n", " ")}\n`
	};
}
/** True when an address can only be reached from this machine. */
function isLoopback(address) {
	return address === "localhost" || address === "::1" || /^127\.\d+\.\d+\.\d+$/.test(address);
}
function configFrom(flags, env) {
	const listen = flags.listen === true ? "0.0.0.0" : flags.listen;
	requireListenAddress(listen);
	refuseInsecureBind(listen, flags);
	if (flags.dataDir === "") throw new InvalidSetting("option '--data-dir' needs the name of a folder");
	const ledger = ledgerSource(flags.ledger);
	requireConcurrency(flags.concurrency, ledger);
	const origin = corsOrigin(flags.enableCorsHeader);
	return Object.freeze({
		listen,
		port: flags.port,
		upstream: upstreamOf(flags, env),
		/** Where node definitions come from; `auto`: the upstream's own, else the embedded library's. */
		objectInfo: objectInfoSource(flags.objectInfo),
		/** Prompts of one user that may wait until the upstream has capacity. */
		outboxLimit: flags.outboxLimit,
		dataDir: flags.dataDir,
		ledger,
		files: filesSource(flags, env),
		/** Files that no ledger knows are moved aside instead of being refused. */
		startAnew: flags.startAnew ?? false,
		workerLimits: parseJsonObject("--worker-limits", flags.workerLimits),
		maxUploadBytes: Math.round(flags.maxUploadSize * MEBIBYTE),
		maxJsonValues: flags.maxJsonValues,
		/** Of one graph. */
		maxNodes: flags.maxNodes,
		/** `undefined`: the origin check is on; else the value of `Access-Control-Allow-Origin`. */
		corsOrigin: origin,
		logLevel: flags.logLevel,
		tracePrompt: flags.tracePrompt === "" ? void 0 : flags.tracePrompt,
		localToken: localToken(flags.localToken),
		view: flags.view,
		dialect: flags.dialect,
		previewMethod: flags.previewMethod,
		concurrency: flags.concurrency,
		queueLimit: flags.queueLimit,
		jobTimeoutMs: flags.jobTimeout * 1e3,
		jobMemoryBytes: flags.jobMemory * MEBIBYTE,
		/** Of each user: entries, their bytes, and the bytes of one entry's graph. */
		history: {
			count: flags.historyLimit,
			bytes: Math.round(flags.historySize * MEBIBYTE),
			graphBytes: Math.round(flags.historyGraphLimit * MEBIBYTE)
		},
		diskBudgetBytes: flags.diskBudget * MEBIBYTE,
		retentionMs: daysInMs(flags.retentionDays),
		maxSockets: flags.maxSockets,
		maxSocketsPerUser: flags.maxSocketsPerUser,
		v2RequestsPerMinute: flags.v2Rate,
		shutdownDelayMs: flags.shutdownDelay * 1e3,
		/** Folder of the browser front end served at `/`; `undefined`: Holdover's own page is there. */
		frontEndRoot: readFrontendRoot(flags.frontEndRoot),
		userdataQuotaBytes: flags.userdataQuota * MEBIBYTE,
		folders: sharedDirectories(flags),
		models: modelSettings(flags),
		deprecationSettings: deprecationSettings(flags),
		proxy: proxySettings(flags),
		/** `undefined`: plain HTTP. */
		tls: readTls(flags),
		tracing: tracingSettings(env)
	});
}
/**
* Refuses a token that no caller could present: headers lose blanks around a key, and cannot have
* control characters.
*/
function localToken(text = "") {
	if (text === text.trim() && !/\p{Cc}/u.test(text)) return text || void 0;
	throw new InvalidSetting("option '--local-token' may have no blanks around it, and no control characters");
}
function requireListenAddress(listen) {
	if (listen === "localhost" || isIP(listen) !== 0) return;
	throw new InvalidSetting(`option '--listen' needs an IP address or "localhost", not '${listen}'`);
}
function refuseInsecureBind(listen, flags) {
	if (isLoopback(listen) || flags.localToken || flags.allowInsecureBind) return;
	throw new InvalidSetting(`binding ${listen} lets anyone who reaches this machine run jobs and read files: set --local-token (HOLDOVER_LOCAL_TOKEN), or say --allow-insecure-bind if that is meant`);
}
/** An origin as browsers write it: they compare the answer with it character by character. */
function corsOrigin(text) {
	if (text === void 0) return void 0;
	if (text === true || text === "*") return "*";
	const url = URL.canParse(text) ? new URL(text) : void 0;
	if (url && /^https?:$/.test(url.protocol)) return url.origin;
	throw new InvalidSetting(`option '--enable-cors-header' needs * or an origin such as http://localhost:3000, not '${text}'`);
}
/** For commander a switch is on as soon as its variable exists, whatever that says. */
const SWITCHES = /* @__PURE__ */ new Set(["HOLDOVER_ALLOW_INSECURE_BIND", "HOLDOVER_START_ANEW"]);
const FALSE_TEXT = /^(0|false|no|off)$/i;
/** commander reads `process.env` only; tests and embedders bring their own. */
function withEnvironment(env, run) {
	const savedEnv = process.env;
	process.env = { ...env };
	for (const [name, text = ""] of Object.entries(env)) {
		const isOff = text === "" || SWITCHES.has(name) && FALSE_TEXT.test(text);
		if (name.startsWith("HOLDOVER_") && isOff) delete process.env[name];
	}
	try {
		run();
	} finally {
		process.env = savedEnv;
	}
}
export { require_proxy_addr as i, parseConfig as n, OWN_SEGMENTS as r, isLoopback as t };
