package framestorm.plan;

import java.io.IOException;
import java.io.StringReader;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import javax.xml.xpath.XPathConstants;
import javax.xml.xpath.XPathExpression;
import javax.xml.xpath.XPathExpressionException;
import javax.xml.xpath.XPathFactory;
import org.w3c.dom.Document;
import org.w3c.dom.NodeList;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/**
 * An XPath whose nodes an answer has, or that is true of it: //face, count(//face) = 2. A prefix, as in //soap:Fault, is the
 * one that the answer writes: no namespace is bound to it here.
 */
final class XmlCondition implements Condition {
    // A name with a prefix, or all names with it; not an axis, a function, or what is in quotes. In documents without
    // namespaces, XPath finds such a name by name() only.
    private static final Pattern PREFIXED = Pattern.compile(
        "(\"[^\"]*\"|'[^']*')|(?<![\\w.$-])([\\p{L}_][\\w.-]*+:)(?!:)(\\*|[\\p{L}_][\\w.-]*+)(?!\\s*\\()",
        Pattern.UNICODE_CHARACTER_CLASS);

    private final String path;

    XmlCondition(String path) throws XPathExpressionException {
        this.path = PREFIXED.matcher(path).replaceAll(each -> Matcher.quoteReplacement(
            each.group(1) != null ? each.group()
                : each.group(3).equals("*") ? "*[starts-with(name(), '" + each.group(2) + "')]"
                : "*[name() = '" + each.group() + "']"));
        compiled(); // for its mistakes; each thread needs one of its own
    }

    private XPathExpression compiled() throws XPathExpressionException {
        return XPathFactory.newInstance().newXPath().compile(path);
    }

    @Override
    public boolean isMet(String answer, UnaryOperator<String> filled) {
        return Values.read(answer, () -> {
            try {
                return isMet(document(answer), compiled());
            } catch (SAXException ignored) { // it is no XML
                return false;
            } catch (IOException | ParserConfigurationException | XPathExpressionException error) {
                throw new IllegalStateException(error);
            }
        });
    }

    private static Document document(String answer) throws IOException, ParserConfigurationException, SAXException {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
        DocumentBuilder builder = factory.newDocumentBuilder();
        builder.setErrorHandler(null); // else it prints
        return builder.parse(new InputSource(new StringReader(Given.withoutMark(answer))));
    }

    private static boolean isMet(Document document, XPathExpression expression) throws XPathExpressionException {
        try {
            return ((NodeList) expression.evaluate(document, XPathConstants.NODESET)).getLength() > 0;
        } catch (XPathExpressionException ignored) { // its value is no set of nodes
            return (Boolean) expression.evaluate(document, XPathConstants.BOOLEAN);
        }
    }
}
