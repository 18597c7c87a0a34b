// Reads a curl command line by JMeter's own parser and prints what it asks for as JSON.

import groovy.json.JsonOutput
import org.apache.jmeter.protocol.http.curl.BasicCurlParser

def request = new BasicCurlParser().parse(args[0])
def login = request.authorization
println JsonOutput.toJson([
    url: request.url,
    method: request.method,
    headers: request.headers.collect { [it.left, it.right] },
    cookies: request.url ? request.getCookies(request.url).collect { "$it.name=$it.value" } : [],
    login: login?.user ? "$login.user:$login.pass" : '',
    body: request.postData ?: '',
    forms: request.formData.size() + request.formStringData.size(),
    proxy: request.proxyServer,
    ignored: request.optionsIgnored + request.optionsNoSupport,
])
